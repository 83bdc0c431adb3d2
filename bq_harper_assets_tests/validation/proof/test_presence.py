"""Rows that Harper holds and no window finds are noticed and named."""

from datetime import timedelta
from typing import Any

import pytest

from bq_harper_assets.activity import now_doing
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.reading import target_rows
from bq_harper_assets.sync.errors import RunStopped
from bq_harper_assets.sync.stop_request import Stop
from bq_harper_assets.validation.proof import presence_rows
from bq_harper_assets.validation.proof.presence import check_presence
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


def stored(minute: float) -> str:
    """The time of so many minutes after the start, as Harper has it."""
    return target_rows.text_of(Kind.TIMESTAMP, START + minute * MINUTE)


def look(bench: Bench, contract: TableContract) -> Verdict:
    found = check_presence(bench.harper, bench.ledger, contract)
    assert found is not None
    return found


def test_rows_outside_every_cell_are_listed_and_not_failed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence_rows, "ROWS_PER_PAGE", 4)
    contract = synced(bench)
    found = look(bench, contract)
    assert found.passed
    assert found.metadata | {"held": 15, "in_cells": 10, "outside": 5, "lost": 0} == found.metadata
    assert found.message == (
        f"Harper holds 15 rows of {contract.target.table} in the order of ids; 10 are in synced "
        "cells, and each is found by its window; 5 are after the newest window that was synced"
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
    monkeypatch.setattr(presence_rows, "ROWS_PER_PAGE", 4)
    contract = synced(bench)
    bench.harper.upsert(contract.target.table, [{"id": row_id, "ts": time}])
    found = look(bench, contract)
    assert found.status is ProofStatus.DIFFERS
    assert [row.id for row in found.rows] == [row_id]
    assert f"1 of them is found by no window, so that no cell's proof sees it: {row_id!r}" in (
        found.message
    )
    assert f"bqh repair {contract.id}" in found.message


def test_rows_without_a_time_in_an_adopted_table_are_listed(bench: Bench) -> None:
    contract = synced(bench, manage="adopt")
    bench.harper.upsert(contract.target.table, [{"id": "timeless", "ts": None}])
    found = look(bench, contract)
    assert found.passed
    assert "1 is without a time that can be read" in found.message


def test_rows_of_others_with_times_in_another_form_are_listed_and_not_lost(bench: Bench) -> None:
    contract = synced(bench, manage="adopt")
    rows = [{"id": "theirs", "ts": "2026-01-05 00:03:00Z"}, {"id": "between", "ts": stored(17)}]
    bench.harper.upsert(contract.target.table, rows)
    bench.commit(contract, START + 20 * MINUTE, START + 25 * MINUTE)
    found = look(bench, contract)
    assert found.passed
    assert "1 is of others, with times in another form" in found.message
    assert "6 are in windows that no sync has named" in found.message
    bench.harper.create_attribute(contract.target.table, "_hash")
    ours = {"id": "ours", "ts": "2026-01-05 00:04:00Z", "_hash": "0" * 13}
    bench.harper.upsert(contract.target.table, [ours])
    assert [row.id for row in look(bench, contract).rows] == ["ours"]


def test_rows_between_synced_windows_whose_cell_nothing_ever_named_fail_and_are_named(
    bench: Bench,
) -> None:
    contract = synced(bench)
    bench.commit(contract, START + 20 * MINUTE, START + 25 * MINUTE)
    bench.harper.upsert(
        contract.target.table,
        [{"id": "before", "ts": stored(-7)}, {"id": "after", "ts": stored(26)}],
    )
    found = look(bench, contract)
    assert (found.passed, found.status) == (False, ProofStatus.DIFFERS)
    named = sorted(str(row.id)[:12] for row in found.rows)
    assert named == [f"2026010500{minute}" for minute in range(10, 15)]
    assert "5 of them are in windows between synced ones that no sync has ever named" in (
        found.message
    )
    assert f"bqh reconcile {contract.id} compares these windows" in found.message
    assert "1 is before the first window" in found.message
    assert "1 is after the newest window that was synced" in found.message
    later = {"sync": contract.sync.model_copy(update={"start_timestamp": START + 15 * MINUTE})}
    moved = look(bench, contract.model_copy(update=later))  # these windows are no longer wanted
    assert moved.passed
    assert "6 are before the first window" in moved.message


def test_rows_of_cells_that_wait_or_are_open_are_listed(bench: Bench) -> None:
    contract = synced(bench)
    leases, batches = bench.begin(contract, START + 10 * MINUTE, START + 15 * MINUTE)
    for batch in batches:
        bench.ledger.fail_batch(batch, "Harper was away")
    bench.ledger.release(leases)
    found = look(bench, contract)
    assert found.passed
    assert "5 are in cells that were begun and wait to be synced" in found.message


def test_rows_that_are_kept_are_counted(bench: Bench) -> None:
    contract = synced(bench, deletes="keep")  # of ten rows, the commits know four
    found = look(bench, contract)
    assert found.passed
    assert found.metadata["kept"] in (6, 7)
    assert "are kept there after they were gone from BigQuery" in found.message


def test_a_cell_that_a_run_makes_while_rows_are_counted_is_known(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = synced(bench)
    bench.commit(contract, START + 20 * MINUTE, START + 25 * MINUTE)
    read = HarperClient.search_by_value
    left: list[Any] = []

    def meanwhile(self: HarperClient, *args: Any, **named: Any) -> Any:
        page = read(self, *args, **named)
        if not left:
            left.append(bench.begin(contract, START + 10 * MINUTE, START + 15 * MINUTE))
        return page

    monkeypatch.setattr(HarperClient, "search_by_value", meanwhile)
    found = look(bench, contract)
    assert found.passed
    assert "5 are in cells that were begun and wait to be synced" in found.message


def test_a_window_of_many_rows_is_read_in_parts_and_the_look_says_how_far_it_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = synced(bench)
    bench.commit(contract, START + 10 * MINUTE, START + 15 * MINUTE, rows=5)
    for module in (target_rows, presence_rows):
        monkeypatch.setattr(module, "ROWS_PER_REQUEST", 4)
    monkeypatch.setattr(presence_rows, "ROWS_PER_PAGE", 4)
    search = HarperClient.search_by_conditions
    parts: list[Any] = []
    told: set[str] = set()

    def noted(self: HarperClient, *args: Any, **named: Any) -> Any:
        if args[1][0].comparator == "gelt":
            parts.append(args[1][0].value)
        told.add(str(now_doing()))
        return search(self, *args, **named)

    monkeypatch.setattr(HarperClient, "search_by_conditions", noted)
    assert look(bench, contract).passed
    name = contract.target.table
    assert parts[-3:] == [[stored(10), stored(10 + 5 / 3)], *parts[-2:]]
    assert len(parts) == 5
    assert f"counting the rows of {name} in the order of ids, 8 so far" in told
    assert f"looking for the rows of {name} in their windows, 5 so far" in told


def test_a_look_ends_between_two_requests_when_its_run_is_to_stop(bench: Bench) -> None:
    contract, stop = synced(bench), Stop()
    stop.ask()
    with pytest.raises(RunStopped):
        check_presence(bench.harper, bench.ledger, contract, stop)


def test_a_row_without_an_id_is_told_by_its_place(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = synced(bench)

    def nameless(*args: Any, **named: Any) -> Any:
        return [{"id": "a", "ts": stored(1)}, {"ts": stored(2)}]

    monkeypatch.setattr(HarperClient, "search_by_value", nameless)
    found = look(bench, contract)
    assert found.could_not_look
    assert "in place 2 of 2 rows" in found.message


def test_rows_of_cells_at_work_are_not_judged(bench: Bench) -> None:
    contract = synced(bench)
    row = {"id": LOST, "ts": "2026-01-05T00:03:00.000000Z"}
    bench.harper.upsert(contract.target.table, [row])
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
