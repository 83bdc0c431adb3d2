"""Rows whose time moves to another window: they are where they belong, and never absent."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from bq_harper_assets.stores.bigquery.source import Pinned
from bq_harper_assets.stores.harper import target
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.errors import TurnFailed
from bq_harper_assets.sync.plan.delete_guard import MOST_UNGUARDED_ROWS
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import (
    DAY,
    HOUR,
    KEYED,
    OF_QUERY,
    ONE,
    SECOND,
    Table,
    made,
    total,
)
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


def open_cells(table: Table) -> tuple[list[Cell], datetime]:
    """The window that is open by an hour's lag, and a time in it that is not synced yet."""
    closes = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    return table.sync.cells(table.contract, closes - HOUR, closes), closes - SECOND


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
        ask_again = Pinned.asked_again

        def too_late(*args: Any) -> Any:
            self.change()
            return ask_again(*args)

        monkeypatch.setattr(Pinned, "asked_again", too_late)


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
    table = made(sync, tables, last=2 * MOST_UNGUARDED_ROWS, step=1, slices=1, **OF_QUERY)
    table.change("UPDATE T SET ts = TIMESTAMP '2026-01-05 02:30:30' WHERE number < 2000")
    Meanwhile(lambda: table.change("DELETE FROM T WHERE number < 2000")).during(monkeypatch)
    with pytest.raises(TurnFailed, match="would lose 2,000 of the 2,001 rows"):
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


def test_a_row_that_moved_to_the_very_start_of_the_next_window_is_not_deleted(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, **KEYED)
    table.change("UPDATE T SET ts = TIMESTAMP '2026-01-05 01:00:00' WHERE number = 60")
    report = table.run(DAY, ONE)
    assert (total(report, "moved"), total(report, "deleted")) == (1, 0)
    assert table.held == table.wanted


def test_more_moved_rows_than_one_request_names_are_all_found(
    sync: Sync, tables: SmallTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "IDS_PER_REQUEST", 2)
    table = made(sync, tables, key=("number", "name"))
    table.change("UPDATE T SET ts = TIMESTAMP '2026-01-05 02:30:30' WHERE number <= 300")
    report = table.run(DAY, ONE)
    assert (total(report, "moved"), total(report, "deleted")) == (6, 0)
    assert table.held == table.wanted
