"""Every row that Harper takes is counted once in its own cell; those it refuses are singled out."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bq_harper_assets.stores.harper.errors import HarperNotFound, HarperUnauthorized, NotAllWritten
from bq_harper_assets.stores.harper.writing.harper_writer import PAYLOAD_CHARACTERS, Writer
from bq_harper_assets.sync.errors import TooManyRefused
from bq_harper_assets_tests.stores.memory_harper import Asked, MemoryHarper, Said

PLENTY = 100_000


def records(*ids: int, name: str = "x") -> pa.RecordBatch:
    return pa.record_batch({"id": list(ids), "name": [name] * len(ids)})


def writer(memory: MemoryHarper, most_bytes: int = PLENTY, most_refused: int = 10) -> Writer:
    memory.make("Ships")
    return Writer(memory.client(), "Ships", 3, most_bytes, most_refused)


def without(*bad: int) -> Callable[[Asked], Said | None]:
    """A Harper that refuses every request with one of these ids."""

    def refuses(asked: Asked) -> Said | None:
        ids = {each["id"] for each in asked.get("records", ())}
        return (400, {"error": f"cannot take {sorted(ids & {*bad})}"}) if ids & {*bad} else None

    return refuses


def sent(memory: MemoryHarper) -> list[list[int]]:
    return [[each["id"] for each in asked["records"]] for asked in memory.of("upsert")]


def test_rows_are_cut_by_number_and_each_counts_at_its_place(memory: MemoryHarper) -> None:
    ours = writer(memory)
    ours.write(records(1, 2, 3, 4, 5), np.array([0, 2, 2, 0, 2]), 2)
    ours.settle()
    assert sent(memory) == [[1, 2], [3, 4], [5]]
    assert ours.written.tolist() == [2, 0, 3]
    assert ours.requests == 3
    one = len(b'[{"id":1,"name":"x"}]')
    two = len(b'[{"id":1,"name":"x"},{"id":2,"name":"x"}]')
    assert ours.bytes.tolist() == [2 * (two // 2), 0, 2 * (two // 2) + one]
    ours.close()


def test_rows_are_cut_by_bytes_of_the_whole_request(memory: MemoryHarper) -> None:
    frame = memory.client().upsert_frame("Ships")
    two = len(b'[{"id":1,"name":"x"},{"id":2,"name":"x"}]')
    for limit, expected in ((frame + two, [[1, 2], [3]]), (frame + two - 1, [[1], [2], [3]])):
        memory.asked.clear()
        ours = writer(memory, limit)
        ours.write(records(1, 2, 3), np.zeros(3, np.int64), 100)
        ours.settle()
        assert sent(memory) == expected
        ours.close()


@pytest.mark.parametrize("bad", [(1,), (4,), (7,), (1, 7), (3, 4, 5), tuple(range(1, 8))])
def test_exactly_the_bad_rows_are_refused_and_all_others_written(
    memory: MemoryHarper, bad: tuple[int, ...]
) -> None:
    ours = writer(memory)
    memory.refuses = without(*bad)
    places = np.array([0, 1, 2, 0, 1, 2, 0])
    ours.write(records(*range(1, 8)), places, 100)
    ours.settle()
    good = [n for n in range(1, 8) if n not in bad]
    assert [row["id"] for row in memory.rows("Ships")] == good
    assert ours.written.tolist() == [sum(places[n - 1] == p for n in good) for p in range(3)]
    assert [(r.place, r.row_id) for r in ours.refusals] == [(places[n - 1], str(n)) for n in bad]
    first = ours.refusals[0]
    assert json.loads(first.payload) == {"id": bad[0], "name": "x"}
    assert first.reason == f"answered 400: cannot take [{bad[0]}]"
    assert ours.stale == list(bad)
    assert ours.requests == len(memory.of("upsert"))
    ours.close()


def test_old_versions_of_refused_rows_are_deleted_in_one_request(memory: MemoryHarper) -> None:
    ours = writer(memory)
    memory.make("Ships", {"id": 2}, {"id": 3}, {"id": 9})
    memory.refuses = without(2, 3)
    ours.write(records(1, 2, 3), np.zeros(3, np.int64), 100)
    ours.delete_stale()
    assert [row["id"] for row in memory.rows("Ships")] == [1, 9]
    assert [asked["ids"] for asked in memory.of("delete")] == [[2, 3]]
    assert ours.requests == len(memory.asked)
    ours.close()


def test_without_refused_rows_nothing_is_deleted(memory: MemoryHarper) -> None:
    ours = writer(memory)
    ours.write(records(1), np.zeros(1, np.int64), 100)
    ours.delete_stale()
    assert memory.of("delete") == []
    assert ours.requests == 1
    ours.close()


def test_more_refused_rows_than_may_be_stop_the_task(memory: MemoryHarper) -> None:
    ours = writer(memory, most_refused=2)
    memory.refuses = without(*range(1, 9))
    ours.write(records(*range(1, 9)), np.zeros(8, np.int64), 100)
    with pytest.raises(TooManyRefused, match="more than 2 rows of Ships"):
        ours.settle()
    assert len(ours.refusals) == 3
    ours.settle()  # an error is told once
    ours.close()


def test_a_long_row_is_kept_in_part(memory: MemoryHarper) -> None:
    ours = writer(memory, 10 * PAYLOAD_CHARACTERS)
    memory.refuses = without(1)
    ours.write(records(1, name="é" * PAYLOAD_CHARACTERS), np.zeros(1, np.int64), 100)
    ours.settle()
    assert len(ours.refusals[0].payload) == PAYLOAD_CHARACTERS
    ours.close()


@pytest.mark.parametrize(
    ("answer", "error"), [((403, {"error": "no"}), HarperUnauthorized), (None, HarperNotFound)]
)
def test_a_missing_right_or_table_is_no_fault_of_the_rows(
    memory: MemoryHarper, answer: Said | None, error: type[Exception]
) -> None:
    ours = writer(memory)
    memory.tables.clear()
    memory.refuses = lambda asked: answer
    ours.write(records(1, 2), np.zeros(2, np.int64), 100)
    with pytest.raises(error):
        ours.settle()
    assert (ours.refusals, len(memory.asked)) == ([], 1)
    ours.close()


@pytest.mark.parametrize(
    ("message", "skipped", "told"),
    [("upserted 1 of 2 records", [2], "wrote 1 of 2"), ("upserted 2 of 2 records", [2], "wrote 2")],
)
def test_rows_that_harper_leaves_out_are_an_error(
    memory: MemoryHarper, message: str, skipped: list[int], told: str
) -> None:
    ours = writer(memory)
    body: dict[str, Any] = {"message": message, "skipped_hashes": skipped}
    memory.refuses = lambda asked: (200, body)
    ours.write(records(1, 2), np.zeros(2, np.int64), 100)
    with pytest.raises(NotAllWritten, match=told) as failed:
        ours.settle()
    assert "skipped 1" in str(failed.value)
    assert ours.written.sum() == 0
    ours.close()


def test_an_error_of_any_request_is_raised_also_if_a_later_one_is_fine(
    memory: MemoryHarper,
) -> None:
    ours = writer(memory)
    memory.refuses = lambda asked: (
        (403, {"error": "no"}) if asked["records"][0]["id"] == 1 else None
    )
    with pytest.raises(HarperUnauthorized):
        ours.write(records(1, 2), np.zeros(2, np.int64), 1)
    ours.close()
