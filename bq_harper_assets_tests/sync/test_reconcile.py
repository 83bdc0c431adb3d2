"""A cell that was synced before: whatever happened to its source, it equals it again."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.records import CellState, Mode
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync import vanished
from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.guard import MOST_ROWS
from bq_harper_assets.sync.report import RunFailed, RunReport
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
DAY = utc(2026, 1, 5)
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
ONE, TWO, THREE = (utc(2026, 1, 5, hour) for hour in (1, 2, 3))
ROWS = (
    "SELECT n AS number, TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL n SECOND) AS ts,"
    " CONCAT('name ', CAST(n AS STRING)) AS name"
    " FROM UNNEST(GENERATE_ARRAY(0, {last}, {step})) AS n"
)
KEYED: dict[str, Any] = {"key": ("number",)}
OF_QUERY, LATEST = KEYED | {"custom_query": "all"}, KEYED | {"latest": True}


@dataclass
class Table:
    """A source that changes and its contract."""

    sync: Sync
    tables: SmallTables
    source: TableRef
    contract: TableContract
    reports: list[RunReport] = field(default_factory=list)

    def change(self, statement: str) -> None:
        """With T for the table's name."""
        self.tables.run(statement.replace(" T ", f" {self.source.sql} "))

    def run(self, start: datetime = DAY, end: datetime = THREE, **settings: Any) -> RunReport:
        """All cells of these windows."""
        cells = self.sync.cells(self.contract, start, end)
        return self.sync.run(self.contract, cells, **settings)

    @property
    def held(self) -> dict[int, tuple[str, str]]:
        """Time and name by number; every number once."""
        rows = self.sync.rows(self.contract)
        found = {row["number"]: (row["ts"], row["name"]) for row in rows}
        assert len(found) == len(rows)
        return found

    @property
    def wanted(self) -> dict[int, tuple[str, str]]:
        """The same of the source."""
        rows = self.tables.queries.run(f"SELECT * FROM {self.source.sql}", doing="reading").rows
        return {row["number"]: (row["ts"] and _text(row["ts"]), row["name"]) for row in rows}

    def states(self) -> dict[str, CellState]:
        """By cell."""
        return {str(record.cell): record.state for record in self._records()}

    def dirty(self) -> set[str]:
        """Cells with a mark."""
        return {str(record.cell) for record in self._records() if record.marks}

    def _records(self) -> Any:
        table = self.sync.stores.ledger.find_table(self.contract.id)
        assert table is not None
        return self.sync.stores.ledger.cells(table, DAY, utc(2027, 1, 1))


def _text(ts: datetime) -> str:
    return ts.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def made(
    sync: Sync, tables: SmallTables, last: int = 10_799, step: int = 60, **declared: Any
) -> Table:
    """Synced once: three hours of rows."""
    source = tables.make_from(ROWS.format(last=last, step=step))
    if declared.get("custom_query") == "all":
        declared |= {"custom_query": f"SELECT * FROM {source.sql}", "dataset": None, "table": None}
    table = Table(sync, tables, source, sync.contract(source, **declared))
    table.reports.append(table.run())
    return table


def total(report: RunReport, count: str) -> int:
    return sum(getattr(cell.result, count) for cell in report.cells)


@pytest.mark.promise("J1")
@pytest.mark.parametrize("declared", [{}, KEYED], ids=["keyless", "keyed"])
def test_a_cell_that_did_not_change_is_compared_and_nothing_is_written(
    sync: Sync, tables: SmallTables, declared: dict[str, Any]
) -> None:
    table = made(sync, tables, **declared)
    before = sync.rows(table.contract)
    report = table.run()
    assert {cell.mode for cell in report.cells} == {Mode.RECONCILE}
    assert (report.requests, total(report, "unchanged"), total(report, "written")) == (0, 180, 0)
    assert sync.rows(table.contract) == before


@pytest.mark.promise("N12")
@pytest.mark.parametrize("declared", [{}, KEYED], ids=["keyless", "keyed"])
def test_late_changed_and_deleted_rows_are_put_right_and_no_other_row_is_written(
    sync: Sync, tables: SmallTables, declared: dict[str, Any]
) -> None:
    table = made(sync, tables, **declared)
    batches = {row["number"]: row["_batch"] for row in sync.rows(table.contract)}
    table.change(
        "INSERT INTO T (number, ts, name) VALUES (7, TIMESTAMP '2026-01-05 00:10:01', 'late')"
    )
    table.change("UPDATE T SET name = 'changed' WHERE number IN (60, 7200)")
    table.change("DELETE FROM T WHERE number IN (120, 3600, 7260)")
    report = table.run()
    assert table.held == table.wanted
    assert (total(report, "written"), total(report, "unchanged")) == (3, 175)
    assert total(report, "deleted") == (3 if declared else 5)  # without a key, a change is two rows
    moved = {
        row["number"]
        for row in sync.rows(table.contract)
        if batches.get(row["number"]) != row["_batch"]
    }
    assert moved == {7, 60, 7200}


@pytest.mark.promise("N12")
@pytest.mark.parametrize("declared", [KEYED, OF_QUERY, LATEST], ids=["table", "query", "latest"])
def test_a_row_that_moved_to_a_window_that_is_not_run_is_written_there_and_never_absent(
    sync: Sync, tables: SmallTables, declared: dict[str, Any]
) -> None:
    table = made(sync, tables, **declared)
    table.change("UPDATE T SET ts = TIMESTAMP '2026-01-05 02:30:30' WHERE number = 60")
    report = table.run(DAY, ONE)
    assert table.held == table.wanted
    assert (total(report, "moved"), total(report, "deleted")) == (1, 0)
    assert {cell.split("|")[0] for cell in table.dirty()} == {"2026-01-05T02:00"}
    table.run(TWO, THREE)
    assert table.dirty() == set()
    assert table.held == table.wanted


@pytest.mark.promise("N12")
@pytest.mark.parametrize("declared", [KEYED, OF_QUERY, LATEST], ids=["table", "query", "latest"])
def test_a_write_that_takes_a_row_out_of_another_window_marks_that_window_first(
    sync: Sync, tables: SmallTables, declared: dict[str, Any]
) -> None:
    table = made(sync, tables, **declared)
    table.change("UPDATE T SET ts = TIMESTAMP '2026-01-05 02:30:30' WHERE number = 60")
    table.run(TWO, THREE)
    assert table.held == table.wanted
    assert {cell.split("|")[0] for cell in table.dirty()} == {"2026-01-05T00:00"}
    table.run(DAY, ONE)
    assert table.dirty() == set()


def open_cells(table: Table) -> tuple[list[Cell], datetime]:
    """The window that is open by an hour's lag, and a time in it that is not synced yet."""
    closes = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    return table.sync.cells(table.contract, closes - HOUR, closes), closes - SECOND


@pytest.mark.promise("N12")
@pytest.mark.parametrize("declared", [KEYED, OF_QUERY, LATEST], ids=["table", "query", "latest"])
def test_a_row_that_moved_to_where_an_open_window_is_not_synced_yet_leaves_no_old_version(
    sync: Sync, tables: SmallTables, declared: dict[str, Any]
) -> None:
    table = made(sync, tables, safety_lag=HOUR, **declared)
    cells, last = open_cells(table)
    table.change(f"UPDATE T SET ts = TIMESTAMP '{last:%F %T}+00' WHERE number = 60")
    report = sync.run(table.contract, [*sync.cells(table.contract, DAY, ONE), *cells])
    assert table.held == table.wanted
    assert (total(report, "moved"), total(report, "deleted")) == (1, 0)


@pytest.mark.promise("N12")
@pytest.mark.parametrize("declared", [KEYED, OF_QUERY], ids=["table", "query"])
def test_a_row_that_moved_on_within_its_open_window_is_not_absent_meanwhile(
    sync: Sync, tables: SmallTables, declared: dict[str, Any]
) -> None:
    table = made(sync, tables, safety_lag=HOUR, **declared)
    cells, last = open_cells(table)
    first = cells[0].window.start
    table.change(f"UPDATE T SET ts = TIMESTAMP '{first:%F %T}+00' WHERE number IN (60, 120)")
    both = [*sync.cells(table.contract, DAY, ONE), *cells]
    sync.run(table.contract, both)
    table.change(f"UPDATE T SET ts = TIMESTAMP '{last:%F %T}+00' WHERE number = 60")
    report = sync.run(table.contract, both)
    assert table.held == table.wanted
    assert (total(report, "moved"), total(report, "deleted")) == (1, 0)
    assert len(table.dirty()) == 1  # the next poll looks at it again


@dataclass
class Meanwhile:
    """A source that changes right before the run asks its query again."""

    change: Callable[[], None]

    def during(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ask_again = vanished.asked_again

        def too_late(*args: Any) -> Any:
            self.change()
            return ask_again(*args)

        monkeypatch.setattr(vanished, "asked_again", too_late)


@pytest.mark.promise("N12")
@pytest.mark.parametrize(
    ("moment", "where"),
    [
        ("TIMESTAMP '2026-01-05 01:30:30'", "2026-01-05T01:00"),
        ("TIMESTAMP '2026-01-05 00:30:30'", "2026-01-05T00:00"),  # into the window that is run
        ("CURRENT_TIMESTAMP()", None),  # after T
    ],
)
def test_a_row_of_a_query_that_goes_on_moving_while_a_run_looks_is_never_absent(
    sync: Sync,
    tables: SmallTables,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    where: str | None,
) -> None:
    table = made(sync, tables, **OF_QUERY)
    table.change("UPDATE T SET ts = TIMESTAMP '2026-01-05 02:30:30' WHERE number IN (60, 120)")
    again = f"UPDATE T SET ts = {moment} WHERE number = 60"
    Meanwhile(lambda: table.change(again)).during(monkeypatch)
    report = table.run(DAY, ONE)
    assert (total(report, "moved"), total(report, "deleted")) == (2, 0)
    assert table.held == table.wanted
    monkeypatch.undo()
    # Each is a place to look again, also the one that this very run has committed.
    windows = {cell.split("|")[0] for cell in table.dirty()}
    assert {"2026-01-05T02:00", *([where] if where else [])} <= windows
    table.run()
    assert table.held == table.wanted
    if where:
        assert table.dirty() == set()


def test_rows_of_a_query_that_go_while_a_run_looks_are_counted_by_the_guard(
    sync: Sync, tables: SmallTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(sync, tables, last=2 * MOST_ROWS, step=1, slices=1, **OF_QUERY)
    table.change("UPDATE T SET ts = TIMESTAMP '2026-01-05 02:30:30' WHERE number < 2000")
    Meanwhile(lambda: table.change("DELETE FROM T WHERE number < 2000")).during(monkeypatch)
    with pytest.raises(RunFailed, match="would lose 2,000 of the 2,001 rows"):
        table.run(DAY, ONE)
    assert len(table.held) == 2001


@pytest.mark.promise("N12")
def test_a_row_that_leaves_every_window_is_deleted(sync: Sync, tables: SmallTables) -> None:
    table = made(sync, tables, **KEYED)
    table.change("UPDATE T SET ts = NULL WHERE number = 60")
    table.change("UPDATE T SET ts = TIMESTAMP '2099-01-01' WHERE number = 120")
    table.change("UPDATE T SET ts = TIMESTAMP '2020-01-01' WHERE number = 180")
    report = table.run()
    assert set(table.wanted) - set(table.held) == {60, 120, 180}
    assert (total(report, "deleted"), total(report, "moved")) == (3, 0)


def test_rows_with_a_key_of_several_columns_are_found_where_they_moved(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, key=("number", "name"))
    table.change("UPDATE T SET ts = TIMESTAMP '2026-01-05 02:30:30' WHERE number = 60")
    table.change("DELETE FROM T WHERE number = 120")
    report = table.run(DAY, ONE)
    assert table.held == table.wanted
    assert (total(report, "moved"), total(report, "deleted")) == (1, 1)


@pytest.mark.promise("N12")
def test_rows_gone_from_the_source_are_kept_where_the_contract_says_so(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, deletes="keep", **KEYED)
    table.change("DELETE FROM T WHERE number IN (60, 120)")
    report = table.run()
    assert set(table.held) - set(table.wanted) == {60, 120}
    assert (total(report, "kept"), total(report, "deleted")) == (2, 0)


@pytest.mark.promise("N12")
def test_rows_gone_from_the_source_are_marked_and_the_mark_goes_when_they_return(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, deletes="flag", **KEYED)
    table.change("DELETE FROM T WHERE number IN (60, 120)")
    report = table.run()
    marks = {row["number"]: row["_deletedAt"] for row in sync.rows(table.contract)}
    assert {number for number, mark in marks.items() if mark} == {60, 120}
    assert marks[60] == _text(report.t)
    assert total(report, "flagged") == 2
    assert total(table.run(), "flagged") == 0
    table.change(
        "INSERT INTO T (number, ts, name) VALUES (60, TIMESTAMP '2026-01-05 00:01:00', 'name 60')"
    )
    table.run()
    marks = {row["number"]: row["_deletedAt"] for row in sync.rows(table.contract)}
    assert {number for number, mark in marks.items() if mark} == {120}


@pytest.mark.promise("N12")
def test_a_window_that_lost_most_of_its_rows_is_refused_until_it_is_allowed(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, last=10_799, step=1, slices=1)
    before = table.held
    table.change(
        "DELETE FROM T WHERE ts >= TIMESTAMP '2026-01-05 01:00:00'"
        " AND ts < TIMESTAMP '2026-01-05 02:00:00'"
    )
    table.change("DELETE FROM T WHERE number = 5")
    with pytest.raises(RunFailed) as failed:
        table.run()
    assert str(failed.value) == (
        f"{table.contract.id}: 1 of 3 cells failed, the first is 2026-01-05T01:00|s00: would lose "
        "3,600 of the 3,600 rows that Harper holds of it. Nothing of it was written. If these "
        f"rows are really gone from BigQuery: bqh sync {table.contract.id} --from 2026-01-05T01:00 "
        "--to 2026-01-05T02:00 --allow-deletes. The other cells are committed. "
        f"Next: bqh sync {table.contract.id}"
    )
    assert not failed.value.report.is_transient
    assert set(before) - set(table.held) == {5}
    assert table.states()["2026-01-05T01:00|s00"] is CellState.REFUSED
    table.run(allow_deletes=True)
    assert table.held == table.wanted
    assert set(table.states().values()) == {CellState.SYNCED}


def test_an_emptied_table_of_small_cells_is_refused_as_a_whole(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, last=10_799, step=9, slices=2)
    assert len(table.held) == 1200 > MOST_ROWS
    table.change("DELETE FROM T WHERE TRUE")
    with pytest.raises(RunFailed, match="the run would lose 1,200 of the 1,200 rows"):
        table.run()
    assert len(table.held) == 1200


def test_a_small_cell_that_honestly_became_empty_is_not_refused(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables)
    table.change("DELETE FROM T WHERE ts < TIMESTAMP '2026-01-05 01:00:00'")
    table.run()
    assert table.held == table.wanted
    assert len(table.held) == 120


def test_rows_that_somebody_put_or_changed_or_deleted_in_harper_are_put_right(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, **KEYED)
    target = table.contract.target_table
    row = next(row for row in sync.rows(table.contract) if row["number"] == 60)
    sync.harper.delete(target, [3600])
    sync.harper.upsert(target, [{**row, "id": 61, "number": 61}])
    sync.harper.upsert(target, [{"id": 120, "name": "bent", "_hash": "0" * 13}])
    report = table.run()
    assert table.held == table.wanted
    assert (total(report, "written"), total(report, "deleted")) == (2, 1)


def test_equal_rows_of_a_keyless_table_come_and_go_one_by_one(
    sync: Sync, tables: SmallTables
) -> None:
    source = tables.make_from(
        "SELECT TIMESTAMP '2026-01-05 00:00:01' AS ts, 'same' AS name"
        " FROM UNNEST(GENERATE_ARRAY(1, 5)) AS n"
    )
    table = Table(sync, tables, source, sync.contract(source))
    table.run()
    assert len(sync.rows(table.contract)) == 5
    table.change("INSERT INTO T (ts, name) SELECT ts, name FROM T LIMIT 2")
    assert total(table.run(), "written") == 2
    assert len(sync.rows(table.contract)) == 7
    table.change("DELETE FROM T WHERE TRUE")
    table.change("INSERT INTO T (ts, name) VALUES (TIMESTAMP '2026-01-05 00:00:01', 'same')")
    report = table.run()
    assert len(sync.rows(table.contract)) == 1
    assert (total(report, "deleted"), total(report, "written")) == (6, 0)
