"""What `bqh sync --changed` says of the cells that are due, and of those that it cannot judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bq_harper_assets.cli.exit_codes import ExitCode
from bq_harper_assets.cli.runs.due_windows import OPEN, WORDS, DueCells, find_due
from bq_harper_assets.contract.project import Project
from bq_harper_assets.instants import floor_to_window, micros_at
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.records import Batch, LedgerRoute, Mode, Wanted
from bq_harper_assets.schema.logical import Column, Kind, TableSchema
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window, windows_between
from bq_harper_assets.sync.ledger_facts import cell_key, table_facts
from bq_harper_assets.sync.protocols import Fingerprint
from bq_harper_assets.sync.revisit.due_cells import Reason
from bq_harper_assets_tests.cli.conftest import ByHand
from bq_harper_assets_tests.ledger.sample import TTL, result
from bq_harper_assets_tests.stores.bigquery.by_hand import Asked, described
from bq_harper_assets_tests.temporary_project import HOUR, hours_ago, table

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
CELL = Cell(Window(NOON, NOON + HOUR), 0)


def test_there_are_words_for_every_reason() -> None:
    assert set(WORDS) == {reason.value for reason in Reason} | {OPEN}
    for reason in WORDS:
        told = str(DueCells(table="orders", looked_at=8, at=NOON, by_reason={reason: [CELL]}))
        assert told.startswith("1 of 8 cells of orders are due:\n  1 ")
        assert told.endswith(": 1 window, 2026-11-16T12:00")


def test_cells_that_a_run_is_moving_are_not_called_equal() -> None:
    at_work = {"9f56d1aa-1": [Cell(CELL.window, number) for number in range(3)]}
    found = DueCells(table="orders", looked_at=8, at=NOON, by_reason={}, at_work=at_work)
    assert str(found) == (
        "nothing of orders is due: 5 of its 8 cells are as BigQuery has them at 2026-11-16"
        " 12:00:00 UTC; 3 that a run is writing now are not judged"
    )
    assert found.told_at_the_end() == (
        "cells of orders are not judged: 3 that run 9f56d1aa is writing now (1 window,"
        " 2026-11-16T12:00). Once that has ended, type: bqh sync orders --changed"
    )


@pytest.mark.parametrize(
    ("looked_at", "of_runs", "code"),
    [
        (8, ExitCode.DONE, ExitCode.PARTLY),
        (8, ExitCode.NOT_PROVED, ExitCode.PARTLY),
        (8, ExitCode.DIFFERS, ExitCode.DIFFERS),
        (8, ExitCode.ERROR, ExitCode.ERROR),
        (3, ExitCode.DONE, ExitCode.ERROR),
    ],
)
def test_a_sync_that_left_out_what_a_run_writes_does_not_say_that_all_is_done(
    looked_at: int, of_runs: ExitCode, code: ExitCode
) -> None:
    at_work = {"9f56d1aa-1": [Cell(CELL.window, number) for number in range(3)]}
    found = DueCells(table="orders", looked_at=looked_at, at=NOON, by_reason={}, at_work=at_work)
    assert found.exit_code(of_runs) is code
    idle = DueCells(table="orders", looked_at=looked_at, at=NOON, by_reason={})
    assert idle.exit_code(of_runs) is of_runs
    assert idle.told_at_the_end() is None


def test_cells_that_are_due_are_listed_by_reason_and_in_the_order_of_time() -> None:
    later = Cell(Window(NOON + HOUR, NOON + 2 * HOUR), 0)
    reasons = {"failed": [later], "missing": [CELL]}
    due = DueCells(
        table="orders",
        looked_at=1_234,
        at=NOON,
        by_reason=reasons,
        at_work={"9f56d1aa-1": [CELL] * 1_000},
    )
    assert due.cells == [CELL, later]
    assert str(due) == (
        "2 of 1,234 cells of orders are due:\n"
        "  1 failed in their last run: 1 window, 2026-11-16T13:00\n"
        "  1 never synced: 1 window, 2026-11-16T12:00\n"
        "  1,000 that a run is writing now are not judged"
    )


ROW = {"n": 1, "d": 1, "x": 1, "low": 1, "high": 1}
FIELDS = [{"name": "ts", "type": "TIMESTAMP"}, {"name": "k", "type": "INTEGER"}]
COLUMNS = (Column(name="ts", kind=Kind.TIMESTAMP), Column(name="k", kind=Kind.INT64))


@dataclass
class Due:
    """A table of two slices that began five hours ago; half of its newest window is over."""

    by_hand: ByHand
    start: datetime
    project: Project
    rows: set[datetime]  # the windows that have a row in BigQuery

    def answer(self, asked: Asked) -> Sequence[Mapping[str, Any]]:
        if "CURRENT_TIMESTAMP" in asked.sql:
            return [{"now": datetime.now(UTC)}]
        return [{"w": micros_at(at), **ROW} for at in sorted(self.rows)]

    @property
    def cells(self) -> list[Cell]:
        until = floor_to_window(datetime.now(UTC) - self.lag, HOUR) + HOUR
        return [
            Cell(window, number)
            for window in windows_between(self.start, until, HOUR)
            for number in range(2)
        ]

    @property
    def lag(self) -> timedelta:
        return self.project.tables[0].safety_lag

    def known(self, ledger: Ledger) -> LedgerRoute:
        [ships] = self.project.tables
        found = ledger.register_route(table_facts(ships, self.project.bigquery.project))
        version = harper_plan(ships, TableSchema(columns=COLUMNS)).version
        ledger.record_schema(found, version.body(), 0)
        return found

    def plan(self, ledger: Ledger, leases: Any, *cells: Cell) -> list[Batch]:
        now = ledger.now()
        wanted = [
            Wanted(
                cell=cell_key(cell),
                mode=Mode.COPY,
                fingerprint=Fingerprint().text,
                upto=min(cell.window.end, now - self.lag),
            )
            for cell in cells
        ]
        return list(ledger.plan(leases, now, 1, wanted, leases.owner))

    def found(self, cells: Sequence[Cell]) -> dict[str, list[Cell]]:
        due = find_due(self.project, self.project.tables[0], self.start, cells)
        assert due.looked_at == len(cells)
        self.not_judged = due.not_judged
        return {reason: list(each) for reason, each in due.by_reason.items()}


@pytest.fixture
def due(by_hand: ByHand) -> Due:
    start = hours_ago(5)
    lag = (datetime.now(UTC).minute - 30) % 60
    ships = table(TableRef("p", "sea", "ships"), start, id="ships", safetyLag=f"{lag}m")
    by_hand.bigquery.tables = described("sea", "ships", schema={"fields": FIELDS})
    made = Due(by_hand, start, by_hand.project.declare(ships), set())
    by_hand.bigquery.answer = made.answer
    return made


def test_of_a_table_never_synced_every_closed_cell_is_due_and_bigquery_is_asked_for_the_open_one(
    due: Due,
) -> None:
    *closed, _, _ = cells = due.cells
    assert due.found(cells) == {"missing": closed}
    due.rows = {cells[-1].window.start}
    assert due.found(cells) == {"missing": closed, OPEN: cells[-2:]}
    assert due.found(closed[2:4]) == {"missing": closed[2:4]}
    assert due.found([]) == {}


def test_cells_are_due_that_changed_failed_or_are_new_and_not_those_that_a_run_is_moving(
    due: Due,
) -> None:
    cells = due.cells
    equal, changed, moving, failed = cells[0], cells[2], cells[4], cells[6]
    with open_ledger(due.project.ledger.url) as ledger:
        found = due.known(ledger)
        leases = ledger.acquire(found, [0, 1], "run-1", TTL)
        batches = due.plan(ledger, leases, *cells)
        done = [
            each for each, cell in zip(batches, cells, strict=True) if cell not in (moving, failed)
        ]
        ledger.commit_cells(leases, [(each, result(0)) for each in done])
        ledger.fail_batch(batches[6], "Harper said no")
        due.rows = {changed.window.start}
        assert due.found(cells) == {"source_changed": cells[2:4], "failed": [failed]}
        assert due.not_judged == 1
        assert due.found([equal, moving]) == {}
        assert due.not_judged == 1
        assert due.found([equal, cells[3]]) == {"source_changed": [cells[3]]}
        assert due.not_judged == 0
        due.rows = {cells[-1].window.start}
        assert due.found(cells[-2:]) == {OPEN: cells[-2:]}
        due.rows = {cells[-3].window.start}  # the newest that has closed
        assert cells[-3] in due.found(cells[-4:])["source_changed"]
        ledger.release(leases)
        assert due.found([moving]) == {"planned_left": [moving]}
        assert due.not_judged == 0


def test_an_open_cell_that_a_run_writes_is_counted_once_and_one_that_it_left_is_due(
    due: Due,
) -> None:
    open_cells = due.cells[-2:]
    with open_ledger(due.project.ledger.url) as ledger:
        leases = ledger.acquire(due.known(ledger), [0, 1], "run-1", TTL)
        due.plan(ledger, leases, *open_cells)
        due.rows = {open_cells[0].window.start}
        assert due.found(open_cells) == {}
        assert due.not_judged == 2
        ledger.release(leases)
        assert due.found(open_cells) == {OPEN: open_cells}
        assert due.not_judged == 0
