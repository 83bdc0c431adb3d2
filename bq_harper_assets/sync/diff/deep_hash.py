"""The hash of a record by all that is stored of it: what a deep proof compares.

Both sides are JSON values here, so that nothing depends on how a store spells a number or orders
the names of an object.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from bq_harper_assets.contract.identifiers import ROW_METADATA
from bq_harper_assets.schema.harper_types import HarperColumn
from bq_harper_assets.sync.arrays.arrow_memory import UInt64s
from bq_harper_assets.sync.arrays.splitmix import GOLDEN, mix
from bq_harper_assets.sync.diff.target_rows import StoredHashes
from bq_harper_assets.sync.source.cell_rows import CellRows
from bq_harper_assets.sync.values.row_plan import RowPlan
from bq_harper_assets.sync.write.record import encode_batch
from bq_harper_assets.sync.write.request_body import bodies

_ANY_TIME = datetime(1970, 1, 1, tzinfo=UTC)  # metadata, which is not compared
_MOST_ROWS, _MOST_BYTES = 10_000, 16 * 1024 * 1024


@dataclass(frozen=True)
class RecordHashes:
    """Of rows as they are read from Harper."""

    as_written: bool = False  # then of the hash that was stored with them too
    extras: set[str] = field(default_factory=set)  # attributes of rows so far that nobody synced

    def attributes(self, plan: RowPlan) -> Sequence[str]:
        """All."""
        return ("*",)

    def of(self, rows: Sequence[Mapping[str, Any]], plan: RowPlan) -> UInt64s:
        """One per row, over the columns of the plan, and what the row should not have."""
        for row in rows:
            self.extras.update(extra_attributes(row, plan))
        hashes = np.array([record_hash(row, plan) for row in rows], np.uint64)
        return _both(hashes, StoredHashes().of(rows, plan)) if self.as_written else hashes


def source_hashes(rows: CellRows, plan: RowPlan, *, as_written: bool = False) -> UInt64s:
    """Of rows of the source, as they should be stored; no record has that of one that cannot."""
    hashes = np.zeros(len(rows.places), np.uint64)
    for row, (record, reason) in enumerate(records_of(rows, plan)):
        if reason is None:
            hashes[row] = record_hash(record, plan)
    return _both(hashes, rows.identity.row_hashes) if as_written else hashes


def _both(of_values: UInt64s, stored: UInt64s) -> UInt64s:
    """Equal where both are: a row whose column was away may be right and its stored hash not."""
    return mix(of_values + np.uint64(GOLDEN)) + stored


def records_of(rows: CellRows, plan: RowPlan) -> Iterator[tuple[Mapping[str, Any], str | None]]:
    """Each row as the record that should be stored, or why it cannot be."""
    if not len(rows.places):
        return
    encoded = encode_batch(rows.batch, plan, rows.identity, synced_at=_ANY_TIME, batch_number=0)
    accepted = encoded.reasons.is_null()
    stored = iter(_records(encoded.rows.filter(accepted)))
    for reason in encoded.reasons.to_pylist():
        yield ({}, reason) if reason is not None else (next(stored), None)


def _records(records: pa.RecordBatch) -> Iterator[Mapping[str, Any]]:
    for body in bodies(records, most_rows=_MOST_ROWS, most_bytes=_MOST_BYTES):
        yield from json.loads(body.content)


def record_hash(record: Mapping[str, Any], plan: RowPlan) -> int:
    """That of all that compared_values() has."""
    text = json.dumps(compared_values(record, plan), sort_keys=True, separators=(",", ":"))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def compared_values(record: Mapping[str, Any], plan: RowPlan) -> dict[str, Any]:
    """What a record must have, and what it must not; nulls and empty arrays count as not there."""
    values = {
        column.name: _synced(record.get(column.name), column, column.name, plan.others)
        for column in plan.columns
    }
    values |= {name: _plain(record[name]) for name in extra_attributes(record, plan)}
    return {name: value for name, value in values.items() if value not in (None, [])}


def extra_attributes(record: Mapping[str, Any], plan: RowPlan) -> list[str]:
    """Attributes with a value that neither the source nor a sync has put there."""
    if plan.others is None:
        return []
    own = {plan.primary_key, *plan.names, *ROW_METADATA}
    return [
        name
        for name, value in record.items()
        if name not in own and name not in plan.others and value not in (None, [])
    ]


def _synced(value: Any, column: HarperColumn, path: str, others: frozenset[str] | None) -> Any:
    """An object may hold a field from before it was set aside, and no other."""
    if isinstance(value, list) and column.repeated:
        single = replace(column, repeated=False)
        return [_synced(each, single, path, others) for each in value]
    if isinstance(value, dict) and column.fields:
        inner = {
            field.name: _synced(value.get(field.name), field, f"{path}.{field.name}", others)
            for field in column.fields
        }
        if others is not None:
            unknown = [name for name in value if name not in inner]
            inner |= {n: _plain(value[n]) for n in unknown if f"{path}.{n}" not in others}
        return {name: each for name, each in inner.items() if each not in (None, [])}
    return _plain(value)


def _plain(value: Any) -> Any:
    """1.0 is 1, and -0.0 is 0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        inner = {name: _plain(each) for name, each in value.items()}
        return {name: each for name, each in inner.items() if each not in (None, [])}
    return value
