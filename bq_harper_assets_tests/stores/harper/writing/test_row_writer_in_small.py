"""A task's rows become records of their batches, and those that cannot be stored are told."""

import json
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.stores.harper.writing.row_writer import HarperRowWriter
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.grid import Grid, Part
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets.sync.errors import LeaseRanOut
from bq_harper_assets.sync.identity.row_id import hash_text, identify
from bq_harper_assets.sync.protocols import LeaseTerms, WriteOrder
from bq_harper_assets.sync.source.cell_rows import CellRows
from bq_harper_assets_tests.stores.harper_columns import native_column
from bq_harper_assets_tests.stores.memory_harper import ONCE, MemoryHarper
from bq_harper_assets_tests.stores.small_tables import utc

DAY, HOUR = utc(2026, 1, 5), timedelta(hours=1)
LOST = "a" * 70 + "\x01"
COLUMNS = (
    Column(name="key", kind=Kind.STRING),
    Column(name="at", kind=Kind.TIMESTAMP),
    Column(name="ratio", kind=Kind.FLOAT64),
)
PLAN = RowPlan(columns=tuple(map(native_column, COLUMNS)), timestamp="at", key=("key",))


def order(**changes: Any) -> WriteOrder:
    lasts_s = changes.pop("lasts_s", 3600.0)
    lease = LeaseTerms(
        target="Ships",
        epochs={0: 1},
        deadline=time.time() + lasts_s,
        effect_within_s=1.0,
        max_clock_skew_s=0.0,
    )
    known = WriteOrder(lease=lease, synced_at=DAY + HOUR, most_rows=100, most_bytes=100_000)
    return replace(known, **changes)


def rows(*keys: str | None, ratio: float = 0.5, bad: tuple[int, ...] = ()) -> CellRows:
    times = pa.array([DAY + n * HOUR for n in range(len(keys))], pa.timestamp("us", "UTC"))
    ratios = [float("nan") if n in bad else ratio for n in range(len(keys))]
    batch = pa.record_batch({"key": pa.array(keys, pa.string()), "at": times, "ratio": ratios})
    return CellRows(batch, identify(batch, PLAN), np.arange(len(keys)))


def writer(memory: MemoryHarper, retry: RetryPolicy = ONCE, **changes: Any) -> HarperRowWriter:
    memory.make("Ships")
    cells = [Cell(window, 0) for window in windows_between(DAY, DAY + 3 * HOUR, HOUR)]
    grid = Grid.of({cell: Part.whole(cell, 11 + at) for at, cell in enumerate(cells)}, slices=1)
    return HarperRowWriter(memory.connection, "Ships", retry, order(**changes), PLAN, grid)


def test_records_have_the_batch_of_their_cell_and_the_time_of_the_turn(
    memory: MemoryHarper,
) -> None:
    ours, some = writer(memory, clears=("old",)), rows("b", "a", "c")
    places, _ = ours.write(some)
    ours.finish()
    ours.close()
    first, second, _ = memory.rows("Ships")
    assert (first["id"], first["_batch"], second["_batch"]) == ("a", 12, 11)
    assert second == {
        "id": "b",
        "key": "b",
        "at": "2026-01-05T00:00:00.000000Z",
        "ratio": 0.5,
        "_syncedAt": "2026-01-05T01:00:00.000000Z",
        "_batch": 11,
        "_hash": hash_text(some.identity.row_hashes)[0].as_py(),
        "old": None,
    }
    assert places.tolist() == [1, 0, 2]
    assert ours.written.tolist() == [1, 1, 1]
    assert (ours.bytes > 0).all()
    assert (ours.requests, ours.retries, ours.unanswered_at) == (1, 0, None)


def test_rows_that_cannot_be_stored_are_refused_and_their_old_versions_deleted(
    memory: MemoryHarper,
) -> None:
    ours = writer(memory)
    memory.make("Ships", {"id": "b", "ratio": 1}, {"id": "z"})
    ours.write(rows("a", "b", "c", bad=(1,)))
    ours.finish()
    ours.close()
    assert [row["id"] for row in memory.rows("Ships")] == ["a", "c", "z"]
    [refused] = ours.refusals
    assert (refused.place, refused.row_id) == (1, "b")
    assert "ratio: NaN" in refused.reason
    assert json.loads(refused.payload)["key"] == "b"
    assert ours.written.tolist() == [1, 0, 1]


def test_a_row_without_an_id_is_named_by_its_hash_and_deletes_nothing(
    memory: MemoryHarper,
) -> None:
    ours, some = writer(memory), rows("a", None)
    ours.write(some)
    ours.finish()
    ours.close()
    [refused] = ours.refusals
    assert refused.row_id == f"no-id:{hash_text(some.identity.row_hashes)[1].as_py()}"
    assert memory.of("delete") == []


def test_a_key_that_harper_would_lose_is_refused_and_deleted_if_an_earlier_release_stored_it(
    memory: MemoryHarper,
) -> None:
    ours = writer(memory)
    memory.make("Ships", {"id": LOST})
    ours.write(rows(LOST, "a"))
    ours.finish()
    ours.close()
    assert [row["id"] for row in memory.rows("Ships")] == ["a"]
    [refused] = ours.refusals
    assert refused.row_id.startswith("no-id:")


def test_requests_that_were_sent_again_are_counted(memory: MemoryHarper) -> None:
    ours = writer(memory, RetryPolicy(max_retries=2, initial_delay_s=0.001))
    answers = iter([(503, {"error": "busy"}), (504, {"error": "gone"}), None])
    memory.refuses = lambda asked: next(answers)
    before = time.time()
    ours.write(rows("a"))
    ours.close()
    assert (ours.requests, ours.retries) == (1, 2)
    assert ours.unanswered_at is not None
    assert before <= ours.unanswered_at <= time.time()


def test_nothing_is_written_once_the_lease_is_about_to_end(memory: MemoryHarper) -> None:
    ours = writer(memory, lasts_s=0.9)
    memory.make("SyncLease")
    ours.write(rows("a"))
    with pytest.raises(LeaseRanOut):
        ours.finish()
    ours.close()
    assert memory.rows("Ships") == []
