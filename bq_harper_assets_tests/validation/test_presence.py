"""Rows that Harper holds and no window finds are noticed and named."""

from datetime import timedelta
from typing import Any

import pytest

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.records import CellKey, CellState
from bq_harper_assets.ledger.status import CellCommit, CellRecord
from bq_harper_assets.validation import presence
from bq_harper_assets.validation.presence import check_presence, time_ranges
from bq_harper_assets.validation.verdict import ProofStatus, Verdict
from bq_harper_assets_tests.stores.small_tables import utc
from bq_harper_assets_tests.validation.conftest import Bench

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]
START = utc(2026, 1, 5)
MINUTE = timedelta(minutes=1)
LOST = "x" * 70 + "\1"


def synced(bench: Bench, **declared: Any) -> TableContract:
    """Ten minutes in two windows are committed; Harper has a row in each minute of fifteen."""
    moments = [START + n * MINUTE for n in range(15)]
    contract = bench.contract(bench.source(*moments), START, **declared)
    bench.store(contract, *moments)
    bench.commit(contract, START, START + 10 * MINUTE)
    return contract


def look(bench: Bench, contract: TableContract) -> Verdict:
    found = check_presence(bench.harper, bench.ledger, contract)
    assert found is not None
    return found


def test_rows_outside_every_cell_are_listed_and_not_failed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "ROWS_PER_PAGE", 4)
    contract = synced(bench)
    found = look(bench, contract)
    assert found.passed
    assert found.metadata | {"held": 15, "in_cells": 10, "outside": 5, "lost": 0} == found.metadata
    assert found.message == (
        f"Harper holds 15 rows of {contract.target_table} in the order of ids; 10 are in synced "
        "cells, and each is found by its window; 5 are in windows that are not synced, or before "
        "the first"
    )


@pytest.mark.parametrize(
    ("row_id", "time"),
    [
        (LOST, "2026-01-05T00:03:00.000000Z"),
        ("garbled", "garbage"),
        ("timeless", None),
        ("another form", "2026-01-05 00:03:00Z"),
    ],
    ids=["key", "garbage", "null", "form"],
)
def test_a_row_that_no_window_finds_is_named(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, row_id: str, time: str | None
) -> None:
    monkeypatch.setattr(presence, "ROWS_PER_PAGE", 4)
    contract = synced(bench)
    bench.harper.upsert(contract.target_table, [{"id": row_id, "ts": time}])
    found = look(bench, contract)
    assert found.status is ProofStatus.DIFFERS
    assert [row.id for row in found.rows] == [row_id]
    assert f"1 of them are found by no window, so that no proof sees them: {row_id!r}" in (
        found.message
    )
    assert f"bqh repair {contract.id}" in found.message


def test_rows_without_a_time_in_an_adopted_table_are_listed(bench: Bench) -> None:
    contract = synced(bench, manage="adopt")
    bench.harper.upsert(contract.target_table, [{"id": "timeless", "ts": None}])
    found = look(bench, contract)
    assert found.passed
    assert "1 are without a time that can be read" in found.message


def test_rows_of_cells_at_work_are_not_judged(bench: Bench) -> None:
    contract = synced(bench)
    row = {"id": LOST, "ts": "2026-01-05T00:03:00.000000Z"}
    bench.harper.upsert(contract.target_table, [row])
    leases, _ = bench.begin(contract, START, START + 5 * MINUTE)
    found = look(bench, contract)
    assert found.passed
    assert found.metadata["not_judged"] == 6
    assert "6 are not judged, because a run is at work on their cells" in found.message
    bench.ledger.release(leases)


def test_a_table_that_was_never_synced_has_nothing_to_count(bench: Bench) -> None:
    contract = bench.contract(bench.source(START), START)
    assert check_presence(bench.harper, bench.ledger, contract) is None


def test_a_table_that_cannot_be_read_is_told_as_that(bench: Bench) -> None:
    contract = synced(bench).model_copy(update={"target_table": "NoSuchTable"})
    found = look(bench, contract)
    assert found.could_not_look
    assert "could not be counted" in found.message


def test_neighbouring_windows_are_read_together_as_far_as_an_answer_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(presence, "ROWS_PER_REQUEST", 20)

    def record(minute: int, rows: int) -> CellRecord:
        start = START + minute * MINUTE
        end = start + 5 * MINUTE
        commit = CellCommit(1, START, 1, rows, "", "", START, end, True)
        return CellRecord(CellKey(start, end, 0), CellState.SYNCED, commit, 0)

    found = list(time_ranges([record(0, 10), record(5, 10), record(10, 1), record(30, 1)]))
    minutes = [((a - START) // MINUTE, (b - START) // MINUTE) for a, b in found]
    assert minutes == [(0, 10), (10, 15), (30, 35)]
