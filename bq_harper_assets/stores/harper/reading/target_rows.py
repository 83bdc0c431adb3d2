"""The ids and row hashes of Harper's rows are read in ranges of time.

A range is one request, which Harper answers from the index of the timestamp. Pages by offset would
be slow, and would miss rows while others are written.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from bq_harper_assets.contract.identifiers import DELETED_AT, HASH
from bq_harper_assets.instants import first_day_from
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.harper.answers import require_ids
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.stores.harper.encoding.text_forms import stored_text
from bq_harper_assets.sync.arrays.arrow_memory import UInt64s
from bq_harper_assets.sync.cells.slicing import id_hashes, slice_of
from bq_harper_assets.sync.identity.row_id import hashes_of_text
from bq_harper_assets.sync.protocols import FLAGGED, TargetRange, TargetRows

ROWS_PER_REQUEST = 50_000


def ranges_of(
    place: int, begin: datetime, end: datetime, expected_rows: int, kind: Kind
) -> list[TargetRange]:
    """Cuts [begin, end) into equal parts of about ROWS_PER_REQUEST rows or fewer."""
    count = 1 + expected_rows // ROWS_PER_REQUEST
    bounds = [begin + (end - begin) * n / count for n in range(count)] + [end]
    texts = [text_of(kind, bound) for bound in bounds]
    pairs = pairwise(texts)
    return [TargetRange(place, low, high) for low, high in pairs if low != high]


def text_of(kind: Kind, instant: datetime) -> str:
    """Returns the first time of that kind at or after the instant, as Harper stores it."""
    if kind is Kind.DATE:
        return stored_text(first_day_from(instant))
    utc = instant.astimezone(UTC)
    return stored_text(utc if kind is Kind.TIMESTAMP else utc.replace(tzinfo=None))


def held_by_id(
    client: HarperClient, table: str, plan: RowPlan, ids: Sequence[Any]
) -> dict[Any, Mapping[str, Any]]:
    """Reads the rows that have these ids, with all attributes; returns them by id."""
    rows = client.search_by_id(table, ids) if ids else []
    return dict(zip(require_ids(rows, plan.primary_key, "search_by_id", table), rows, strict=True))


class RowHashes(Protocol):
    """Row hashes are found for Harper's rows either by reading or by computing them."""

    def attributes(self, plan: RowPlan) -> Sequence[str]:
        """Names the attributes that must be read of each row."""
        ...

    def of(self, rows: Sequence[Mapping[str, Any]], plan: RowPlan) -> UInt64s:
        """Returns one hash per row."""
        ...


class StoredHashes:
    """Takes the hash that was stored with each row."""

    def attributes(self, plan: RowPlan) -> Sequence[str]:
        """Names few attributes, so that reading back costs little."""
        return (plan.primary_key, HASH, *((DELETED_AT,) if plan.flags_deletes else ()))

    def of(self, rows: Sequence[Mapping[str, Any]], plan: RowPlan) -> UInt64s:
        """Reads the stored hash of each row; it is 0 where a row has none."""
        return hashes_of_text(pa.array([row.get(HASH) for row in rows], pa.string()))


def read_held(
    client: HarperClient,
    table: str,
    plan: RowPlan,
    ranges: Sequence[TargetRange],
    slices: int,
    hashed: RowHashes,
) -> Iterator[tuple[TargetRange, TargetRows]]:
    """Reads the rows range by range; a row that is marked as deleted gets the hash FLAGGED."""
    for each in ranges:
        within = Condition(plan.timestamp, "gelt", [each.low, each.high])
        where = f"{each.low} to {each.high}"
        rows = client.search_by_conditions(table, [within], hashed.attributes(plan), cell=where)
        if not rows:
            continue
        keys = pa.array(require_ids(rows, plan.primary_key, "search_by_conditions", table, where))
        hashes = hashed.of(rows, plan)
        if plan.flags_deletes:
            marked = np.array([row.get(DELETED_AT) is not None for row in rows], np.bool_)
            hashes[marked] = FLAGGED
        slices_of_rows = slice_of(id_hashes(keys, keyless=not plan.key), slices)
        yield each, TargetRows(slices_of_rows, id_hashes(keys, keyless=False), hashes, keys)
