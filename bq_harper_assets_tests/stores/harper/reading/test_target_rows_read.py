"""Rows are read back range by range, each with its id, its slice and its hash."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.stores.harper.errors import HarperRowBroken
from bq_harper_assets.stores.harper.reading.target_rows import (
    ROWS_PER_REQUEST,
    StoredHashes,
    held_by_id,
    ranges_of,
    read_held,
)
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.cells.slicing import id_hashes, slice_of
from bq_harper_assets.sync.identity.row_id import hash_text
from bq_harper_assets.sync.protocols import FLAGGED, TargetRange, TargetRows
from bq_harper_assets_tests.schema.samples import contract, schema
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper
from bq_harper_assets_tests.sync.cells.test_grid import HOUR, NOON

KEY = Column(name="n", kind=Kind.INT64)


def plan(**changes: Any) -> RowPlan:
    return RowPlan.of(harper_plan(contract(**changes), schema(KEY)))


def text(number: int) -> str:
    [found] = hash_text(np.array([number], np.uint64)).to_pylist()
    return str(found)


def row(row_id: Any, time: str, number: int | None = None, **more: Any) -> dict[str, Any]:
    stored = {} if number is None else {"_hash": text(number)}
    return {"id": row_id, "event_time": time, **stored, **more}


def read(memory: MemoryHarper, plan: RowPlan, *ranges: TargetRange) -> list[Any]:
    with memory.client() as client:
        return list(read_held(client, "Orders", plan, ranges, 4, StoredHashes()))


def test_each_range_has_its_rows_and_one_without_rows_is_left_out(memory: MemoryHarper) -> None:
    memory.make("Orders", row(7, "b", 70), row(8, "b", 80), row(9, "d", 90), row(6, "a", 60))
    first, empty, last = (TargetRange(0, "b", "c"), TargetRange(4, "c", "d"), TargetRange(8, "d", "e"))  # fmt: skip # noqa: E501
    found = read(memory, plan(key="n"), first, empty, last)
    assert [each for each, _ in found] == [first, last]
    rows: TargetRows = found[0][1]
    keys = pa.array([7, 8])
    assert rows.keys.to_pylist() == [7, 8]
    assert rows.hashes.tolist() == [70, 80]
    assert rows.ids.tolist() == id_hashes(keys, keyless=False).tolist()
    assert rows.slices.tolist() == slice_of(id_hashes(keys, keyless=False), 4).tolist()
    assert found[1][1].hashes.tolist() == [90]
    assert memory.asked[0]["get_attributes"] == ["id", "_hash"]


def test_equal_rows_of_a_keyless_table_have_one_slice_and_ids_of_their_own(
    memory: MemoryHarper,
) -> None:
    common = "0" * 9 + "1" * 26
    ids = [common, f"{common}-1"]
    memory.make("Orders", *(row(each, "b", 1) for each in ids))
    [(_, rows)] = read(memory, plan(), TargetRange(0, "a", "z"))
    assert rows.slices.tolist() == slice_of(id_hashes(rows.keys, keyless=True), 4).tolist()
    assert len(set(rows.ids.tolist())) == 2


def test_a_row_without_a_stored_hash_has_the_hash_0(memory: MemoryHarper) -> None:
    memory.make("Orders", row(7, "b"), row(8, "b", 80))
    [(_, rows)] = read(memory, plan(key="n"), TargetRange(0, "a", "z"))
    assert rows.hashes.tolist() == [0, 80]


def test_a_row_that_is_marked_as_deleted_has_the_hash_of_such_rows_where_rows_are_flagged(
    memory: MemoryHarper,
) -> None:
    memory.make("Orders", row(7, "b", 70, _deletedAt="2026"), row(8, "b", 80, _deletedAt=None))
    [(_, rows)] = read(memory, plan(key="n", deletes="flag"), TargetRange(0, "a", "z"))
    assert rows.hashes.tolist() == [int(FLAGGED), 80]
    assert memory.asked[-1]["get_attributes"] == ["id", "_hash", "_deletedAt"]
    [(_, rows)] = read(memory, plan(key="n"), TargetRange(0, "a", "z"))
    assert rows.hashes.tolist() == [70, 80]


def test_a_row_without_an_id_is_an_error_that_names_the_range(memory: MemoryHarper) -> None:
    memory.make("Orders")
    memory.refuses = lambda asked: (200, [{"id": 1, "_hash": None}, {"_hash": "x"}])
    with pytest.raises(HarperRowBroken, match=r"cell a to z .* in place 2 of 2 rows"):
        read(memory, plan(key="n"), TargetRange(0, "a", "z"))


def test_rows_are_found_by_their_ids_with_all_they_hold(memory: MemoryHarper) -> None:
    memory.make("Orders", row(7, "b", more=1), row(8, "c"))
    with memory.client() as client:
        found = held_by_id(client, "Orders", plan(key="n"), [9, 8, 7])
        assert found == {7: row(7, "b", more=1), 8: row(8, "c")}
        assert held_by_id(client, "Orders", plan(key="n"), []) == {}
    assert len(memory.asked) == 1


@pytest.mark.parametrize(
    ("rows", "parts"), [(ROWS_PER_REQUEST - 1, 1), (ROWS_PER_REQUEST, 2), (0, 1)]
)
def test_a_range_has_as_many_parts_as_requests_are_needed(rows: int, parts: int) -> None:
    found = ranges_of(0, NOON, NOON + HOUR, rows, Kind.TIMESTAMP)
    assert len(found) == parts
    bounds = [each.low for each in found] + [found[-1].high]
    assert bounds == sorted(bounds)
    if parts == 2:
        assert bounds[1] == "2026-01-05T12:30:00.000000Z"
