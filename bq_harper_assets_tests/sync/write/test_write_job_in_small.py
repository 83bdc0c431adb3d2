"""What a job wrote is counted by its receipts and, apart from them, by the ids that were sent."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import TaskContext

from bq_harper_assets.errors import BqhError
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.sync.arrays.arrow_memory import Int64s, UInt64s
from bq_harper_assets.sync.cells.slicing import id_hashes
from bq_harper_assets.sync.protocols import LeaseTerms, WriteOrder
from bq_harper_assets.sync.source.cell_rows import CellRows, Reading
from bq_harper_assets.sync.spark.hash_blobs import PACKED, receipt_row
from bq_harper_assets.sync.spark.receipts import RejectedRow, merged
from bq_harper_assets.sync.write import write_job
from bq_harper_assets.sync.write.write_job import (
    WriteResult,
    counted_bin,
    numbered,
    numbered_here,
    shared_contents,
    write_all,
)
from bq_harper_assets.sync.write.write_task import Chosen, WriteJob
from bq_harper_assets_tests.history.local_frames import Attempt, LocalSpark
from bq_harper_assets_tests.stores.small_tables import utc
from bq_harper_assets_tests.sync.memory_source import ship
from bq_harper_assets_tests.sync.source.test_cell_rows import reading

BAD = "bad"


@dataclass
class NotingTarget:
    """It notes the rows that tasks write, and refuses those that are called bad."""

    waits: Path | None = None
    fails_at: int = 1_000
    written: list[int] = field(default_factory=list)
    finished: int = 0
    closed: int = 0

    def writer(self, order: WriteOrder, reading: Reading) -> "NotingWriter":
        return NotingWriter(self, len(reading.grid.batches))


class NotingWriter:
    requests, retries, unanswered_at = 1, 2, None

    def __init__(self, target: NotingTarget, places: int) -> None:
        self.target = target
        self.written: Int64s = np.zeros(places, np.int64)
        self.bytes: Int64s = np.zeros(places, np.int64)
        self.refusals: list[RejectedRow] = []

    def write(self, rows: CellRows) -> tuple[Int64s, UInt64s]:
        numbers = rows.batch.column("n").to_pylist()
        if len(self.target.written) + len(numbers) > self.target.fails_at:
            raise BqhError("the target is full")
        fine = np.array([name != BAD for name in rows.batch.column("name").to_pylist()], np.bool_)
        for row in np.flatnonzero(~fine):
            self.refusals.append(RejectedRow(int(rows.places[row]), str(numbers[row]), "bad", "{}"))
        some = rows.where(fine)
        self.target.written += some.batch.column("n").to_pylist()
        self.written += np.bincount(some.places, minlength=len(self.written))
        self.bytes += 10 * np.bincount(some.places, minlength=len(self.written))
        return some.places, some.identity.whole_id_hashes

    def finish(self) -> None:
        self.target.finished += 1

    def close(self) -> None:
        self.target.closed += 1


@pytest.fixture
def attempt(monkeypatch: pytest.MonkeyPatch) -> Attempt:
    made = Attempt()
    monkeypatch.setattr(TaskContext, "_taskContext", made)
    return made


def job(target: NotingTarget, reading: Reading, **changes: Any) -> WriteJob:
    lease = LeaseTerms(
        target="Ships", epochs={0: 1}, deadline=0.0, effect_within_s=1.0, max_clock_skew_s=0.0
    )
    most_refused = changes.pop("most_refused", 100)
    order = WriteOrder(
        lease=lease, synced_at=utc(2026, 1, 5), most_rows=9, most_bytes=9, most_refused=most_refused
    )
    tasks: Any = target
    return WriteJob(
        reading=reading, target=tasks, table="Ships", order=order, **{"rows": 9, **changes}
    )


def written(job: WriteJob, attempt: Attempt) -> WriteResult:
    spark: Any = LocalSpark(attempt)
    return write_all(spark, job)


ROWS = [ship(n, 20 * n) for n in range(6)]


@pytest.mark.parametrize("counted_here", [True, False])
@pytest.mark.parametrize("per_place", [1, 3])
def test_every_row_is_written_and_counted_in_its_cell(
    attempt: Attempt, per_place: int, counted_here: bool
) -> None:
    target = NotingTarget()
    rows = 9 if counted_here else write_job.ROWS_COUNTED_HERE + 1
    some = reading(*ROWS, tasks=2)
    result = written(job(target, some, per_place=per_place, rows=rows), attempt)
    assert sorted(target.written) == list(range(6))
    assert (result.sent, result.distinct) == ({0: 3, 1: 3}, {0: 3, 1: 3})
    tallies = merged(result.receipts)
    assert {at: (t.read, t.written, t.bytes) for at, t in tallies.items()} == {
        0: (3, 3, 30), 1: (3, 3, 30),
    }  # fmt: skip
    assert [tallies[at].digest.count for at in (0, 1)] == [3, 3]
    assert [(r.requests, r.retries, r.failure) for r in result.receipts] == [(1, 2, None)] * 2
    assert (target.finished, target.closed) == (2, 2)


def test_rows_with_one_id_show_in_the_count_of_ids(attempt: Attempt) -> None:
    result = written(job(NotingTarget(), reading(ship(1, 5), ship(1, 6), tasks=2)), attempt)
    assert (result.sent, result.distinct) == ({0: 2}, {0: 1})


def test_only_chosen_rows_are_written_and_all_are_read(attempt: Attempt) -> None:
    target = NotingTarget()
    chosen = Chosen(np.array([False, True]), np.sort(id_hashes(pa.array([1, 77]), keyless=False)))
    result = written(job(target, reading(*ROWS), chosen=chosen), attempt)
    assert sorted(target.written) == [1, 3, 4, 5]
    assert merged(result.receipts)[0].read == 3
    assert result.sent == {0: 1, 1: 3}


def test_rows_without_an_id_are_always_given_to_the_writer(attempt: Attempt) -> None:
    nothing = Chosen(np.zeros(2, np.bool_), np.empty(0, np.uint64))
    target = NotingTarget()
    written(job(target, reading({**ship(1, 5), "n": None}, ship(2, 6)), chosen=nothing), attempt)
    assert target.written == [None]


def test_refused_rows_are_told_and_too_many_of_them_fail_the_tasks(attempt: Attempt) -> None:
    rows = [ship(n, n, BAD if n < 3 else "x") for n in range(5)]
    result = written(job(NotingTarget(), reading(*rows), most_refused=3), attempt)
    [receipt] = result.receipts
    assert [each.row_id for each in receipt.refusals] == ["0", "1", "2"]
    assert receipt.failure is None
    assert merged(result.receipts)[0].written == 2
    result = written(job(NotingTarget(), reading(*rows), most_refused=2), attempt)
    assert result.receipts[0].failure is not None
    assert "bad" in result.receipts[0].failure.error


def test_an_error_ends_the_task_with_a_receipt_of_what_was_done(attempt: Attempt) -> None:
    target = NotingTarget(fails_at=2)
    result = written(job(target, reading(*ROWS)), attempt)
    [receipt] = result.receipts
    assert receipt.failure is not None
    assert receipt.failure.error == "the target is full"
    assert (target.finished, target.closed) == (0, 1)


def test_a_task_that_was_tried_before_says_so(attempt: Attempt) -> None:
    spark: Any = LocalSpark(attempt, dies_at_its_end=lambda: True)
    result = write_all(spark, job(NotingTarget(), reading(*ROWS)))
    assert [receipt.earlier_tries for receipt in result.receipts] == [1]


def test_of_no_splits_nothing_is_run(attempt: Attempt) -> None:
    some = reading(tasks=0)
    assert written(job(NotingTarget(), some), attempt) == WriteResult()
    spark: Any = LocalSpark(attempt)
    assert numbered(spark, some) is some


def test_equal_rows_are_numbered_by_a_job_as_they_are_here(attempt: Attempt) -> None:
    same = ship(1, 5)
    some = reading(same, same, ship(2, 6), same, tasks=2, key=None)
    spark: Any = LocalSpark(attempt)
    ours = numbered(spark, some)
    target = NotingTarget()
    result = written(job(target, ours), attempt)
    assert (result.sent, result.distinct) == ({0: 4}, {0: 4})
    assert set(ours.numbers) == set(numbered_here(some).numbers)
    layout: RowPlan = some.layout
    assert layout.key == ()


@pytest.mark.parametrize("here", [True, False])
def test_many_contents_are_numbered_each_by_itself(attempt: Attempt, here: bool) -> None:
    rows = [ship(n, n) for n in range(40) for _ in range(1 + n % 3)]
    some = reading(*rows, tasks=2, key=None)
    spark: Any = LocalSpark(attempt)
    ours = numbered_here(some) if here else numbered(spark, some)
    result = written(job(NotingTarget(), ours), attempt)
    assert result.sent == result.distinct == {0: len(rows)}


def test_only_contents_that_some_rows_share_are_numbered() -> None:
    def blob(*numbers: int) -> bytes:
        return np.array(numbers, np.uint64).tobytes()

    top = 2**64 - 1
    rows = pa.table(
        {
            "bin": [0, 0],
            "stream": ["one", "two"],
            "ids": [blob(5, 6, 7, 7), blob(top, 5, top)],
            "hashes": [blob(50, 60, 70, 70), blob(1, 51, 1)],
        }
    )
    found = {tuple(row.values()) for row in shared_contents(rows).to_pylist()}
    assert found == {
        (5, 50, "one", 1), (5, 51, "two", 1), (7, 70, "one", 2), (-1, 1, "two", 2),
    }  # fmt: skip


def test_receipts_are_passed_on_one_by_one() -> None:
    rows = pa.Table.from_batches([receipt_row(b"a"), receipt_row(b"b")], PACKED)
    found = counted_bin(rows, 4)
    assert found.column("receipt").to_pylist() == [b"a", b"b"]
    assert found.column("sent").to_pylist() == [None, None]
