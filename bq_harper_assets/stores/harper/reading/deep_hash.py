"""A deep hash covers every stored value of a record; deep comparisons use it.

Both sides are JSON values here, so that nothing depends on how a store writes a number or orders
the names of an object.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from bq_harper_assets.contract.identifiers import ROW_METADATA
from bq_harper_assets.instants import EPOCH
from bq_harper_assets.stores.harper.encoding.record import encode_batch
from bq_harper_assets.stores.harper.encoding.request_body import bodies
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.stores.harper.reading.target_rows import StoredHashes
from bq_harper_assets.stores.harper.types import HarperColumn
from bq_harper_assets.sync.arrays.arrow_memory import UInt64s
from bq_harper_assets.sync.arrays.splitmix import GOLDEN, mix
from bq_harper_assets.sync.source.cell_rows import CellRows

_MOST_ROWS, _MOST_BYTES = 10_000, 16 * 1024 * 1024


@dataclass(frozen=True)
class RecordHashes:
    """Computes deep hashes of rows as they are read from Harper."""

    as_written: bool = False  # includes the hash that was stored with a row
    extras: set[str] = field(default_factory=set)  # attributes so far that no sync wrote

    def attributes(self, plan: RowPlan) -> Sequence[str]:
        """Asks for every attribute."""
        return ("*",)

    def of(self, rows: Sequence[Mapping[str, Any]], plan: RowPlan) -> UInt64s:
        """Hashes each row over the columns of the plan and the attributes it should not have."""
        for row in rows:
            self.extras.update(extra_attributes(row, plan))
        hashes = np.array([record_hash(row, plan) for row in rows], np.uint64)
        return _both(hashes, StoredHashes().of(rows, plan)) if self.as_written else hashes


def source_hashes(rows: CellRows, plan: RowPlan, *, as_written: bool = False) -> UInt64s:
    """Hashes rows of the source as they should be stored.

    A row that cannot be stored has the hash 0, which equals no record's.
    """
    hashes = np.zeros(len(rows.places), np.uint64)
    for row, (record, reason) in enumerate(records_of(rows, plan)):
        if reason is None:
            hashes[row] = record_hash(record, plan)
    return _both(hashes, rows.identity.row_hashes) if as_written else hashes


def _both(of_values: UInt64s, stored: UInt64s) -> UInt64s:
    """Combines two hashes, so that results are equal only where both are.

    The values of a row whose column was gone for a while may be right and its stored hash wrong.
    """
    return mix(of_values + np.uint64(GOLDEN)) + stored


def records_of(rows: CellRows, plan: RowPlan) -> Iterator[tuple[Mapping[str, Any], str | None]]:
    """Yields each row as the record that should be stored, or the reason why it cannot be."""
    if not len(rows.places):
        return
    # Any time serves as synced_at: metadata is not compared.
    encoded = encode_batch(rows.batch, plan, rows.identity, synced_at=EPOCH, batch_number=0)
    accepted = encoded.reasons.is_null()
    stored = iter(_records(encoded.rows.filter(accepted)))
    for reason in encoded.reasons.to_pylist():
        yield ({}, reason) if reason is not None else (next(stored), None)


def _records(records: pa.RecordBatch) -> Iterator[Mapping[str, Any]]:
    for body in bodies(records, most_rows=_MOST_ROWS, most_bytes=_MOST_BYTES):
        yield from json.loads(body.content)


def record_hash(record: Mapping[str, Any], plan: RowPlan) -> int:
    """Hashes all that compared_values() returns."""
    text = json.dumps(compared_values(record, plan), sort_keys=True, separators=(",", ":"))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def compared_values(record: Mapping[str, Any], plan: RowPlan) -> dict[str, Any]:
    """Returns what a record must have and what it must not, without nulls and empty arrays."""
    values = {
        column.name: _synced(record.get(column.name), column, column.name, plan.others)
        for column in plan.columns
    }
    values |= {name: _plain(record[name]) for name in extra_attributes(record, plan)}
    return {name: value for name, value in values.items() if value not in (None, [])}


def extra_attributes(record: Mapping[str, Any], plan: RowPlan) -> list[str]:
    """Names the attributes with a value that neither the source nor a sync has written."""
    if plan.others is None:
        return []
    own = {plan.primary_key, *plan.names, *ROW_METADATA}
    return [
        name
        for name, value in record.items()
        if name not in own and name not in plan.others and value not in (None, [])
    ]


def _synced(value: Any, column: HarperColumn, path: str, others: frozenset[str] | None) -> Any:
    """Returns a synced value as it is compared, without nulls and empty arrays inside objects.

    A field that is known and not synced any more is left out. If `others` are given, a field that
    is neither synced nor among them is kept, so that it counts as a difference.
    """
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
    """Makes 1.0 equal to 1 and -0.0 to 0, and leaves nulls and empty arrays out of objects."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        inner = {name: _plain(each) for name, each in value.items()}
        return {name: each for name, each in inner.items() if each not in (None, [])}
    return value
