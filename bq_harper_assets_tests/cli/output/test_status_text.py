"""What `bqh status` prints of a table, line by line."""

from datetime import timedelta
from typing import Any

import pytest

from bq_harper_assets.cli.output.outside_rows import OutsideRows
from bq_harper_assets.cli.output.status_text import table_lines
from bq_harper_assets.cli.output.table_status import SliceStatus, TableStatus
from bq_harper_assets.ledger.questions.workers import Worker
from bq_harper_assets_tests.stores.small_tables import utc

UNTIL = utc(2026, 1, 5, 12)
SLICES = (
    SliceStatus(
        slice="s00",
        synced_until=UNTIL,
        lag_s=3_661.9,
        phase="steady",
        batch_size=500,
        rows=1_234_567,
    ),
    SliceStatus(
        slice="s01",
        synced_until=UNTIL + timedelta(seconds=1),
        lag_s=100_000.0,
        phase="initial",
        batch_size=10_000,
        rows=7,
    ),
)


def status(**known: Any) -> TableStatus:
    """A table that was synced."""
    usual = {
        "cells_due": 1_024,
        "cells": {"synced": 1_024},
        "synced_until": UNTIL,
        "lag_s": 61.5,
        "phase": "steady",
        "batch_size": 5_000,
        "windows_per_run": 24,
        "next_poll_within_s": 30.0,
        "rows": 1_234_567,
        "quarantined": 1_000,
        "newest_t": utc(2026, 1, 5, 12, 30, 15),
    }
    return TableStatus(
        **{"table": "orders", "target": "Orders", "timestamp_column": "ts", **usual, **known}
    )


def worker(**known: Any) -> Worker:
    usual = {"owner": "run-7", "slices": (0,), "since": UNTIL, "until": UNTIL + timedelta(hours=1)}
    return Worker(**{**usual, "is_live": True, "cells": 1, "left": 1, **known})


def lines(**known: Any) -> list[str]:
    return list(table_lines([status(**known)]))


def test_a_table_that_is_synced_says_how_far_and_how_fast_and_advises_nothing() -> None:
    assert lines() == [
        "orders -> Orders",
        "  1,024 of 1,024 cells of closed windows synced, all until 2026-01-05 12:00 UTC:"
        " 0:01:01 behind, phase steady",
        "  1,234,567 rows, 1,000 quarantined, as BigQuery was at 2026-01-05 12:30:15 UTC",
        "    slice  synced until (UTC)  behind  phase  rows/request  rows",
        "  5,000 rows per request, 24 windows per run; its sensors look every 30 s while they"
        " are on",
    ]


def test_where_nothing_is_synced_any_more_the_count_is_zero() -> None:
    assert lines(cells={"failed": 2}, lag_s=None)[1].startswith(
        "  0 of 1,024 cells of closed windows synced, and what was committed reaches without a gap"
        " until 2026-01-05 12:00 UTC: 0:00:00 behind"
    )


def test_slices_stand_in_columns_with_figures_to_the_right() -> None:
    assert lines(slices=SLICES)[3:6] == [
        "    slice  synced until (UTC)   behind          phase    rows/request       rows",
        "    s00    2026-01-05 12:00:00  1:01:01         steady            500  1,234,567",
        "    s01    2026-01-05 12:00:01  1 day, 3:46:40  initial        10,000          7",
    ]


@pytest.mark.parametrize("missing", ["newest_t", "synced_until"])
def test_a_table_that_was_never_synced_says_how_to_start_unless_a_run_does(missing: str) -> None:
    assert lines(**{missing: None})[:2] == [
        "orders -> Orders",
        "  nothing synced yet. Start with: bqh sync orders",
    ]
    at_work = lines(**{missing: None}, workers=(worker(),))
    assert at_work[1] == "  the first sync goes on"
    assert not any("per request" in line for line in at_work)


def test_a_gap_is_told_and_so_is_the_open_window() -> None:
    told = lines(
        cells={"synced": 1_020, "failed": 1},
        cells_open={"synced": 3, "planned": 1},
        open_upto=utc(2026, 1, 5, 12, 30, 1),
        cells_before_start=1_500,
    )
    assert told[1].startswith(
        "  1,020 of 1,024 cells of closed windows synced, and what was committed reaches without"
        " a gap until 2026-01-05 12:00 UTC"
    )
    assert told[2] == ("  3 of 4 cells of windows still open synced, up to 2026-01-05 12:30:01 UTC")
    assert told[3].startswith("  1,500 cells lie before the first window")
    assert told[-2:] == [
        "  failed: 1 cell; type: bqh sync orders --changed",
        "  planned: 1 cell; type: bqh sync orders --changed",
    ]
    nowhere = lines(cells_open={"failed": 1})
    assert nowhere[2] == "  0 of 1 cells of windows still open synced"


def test_the_cells_of_a_state_are_counted_in_closed_and_open_windows() -> None:
    told = lines(cells={"refused": 1_000, "failed": 2}, cells_open={"refused": 234})
    assert told[-2:] == [
        "  refused by the delete guard: 1,234 cells; if BigQuery is right, type:"
        " bqh sync orders --changed --allow-deletes",
        "  failed: 2 cells; type: bqh sync orders --changed",
    ]


def test_what_is_due_is_told_with_the_command_unless_a_run_is_at_work() -> None:
    due = {"failed": 1, "missing": 2_000}
    assert lines(due=due)[-1] == (
        "  cells due: 1 failed, 2,000 missing; to sync them, type: bqh sync orders --changed"
    )
    at_work = lines(due=due, workers=(worker(),), cells={"failed": 3})
    assert "  cells due: 1 failed, 2,000 missing" in at_work
    assert "  failed: 3 cells" in at_work
    assert not any("bqh sync" in line for line in at_work)


def test_a_run_at_work_says_on_how_many_cells_and_when_it_would_be_given_up() -> None:
    assert lines(workers=(worker(cells=1_000, left=3),))[-1] == (
        "  run run-7 has been at work since 2026-01-05 12:00:00 UTC on 1,000 cells; if it died,"
        " its lease ends at 13:00:00 UTC, and the next run takes its cells up"
    )
    assert " UTC and has planned no cell yet; if it died" in lines(workers=(worker(cells=0),))[-1]


def test_a_run_whose_lease_ran_out_is_told_only_if_it_left_cells() -> None:
    assert lines(workers=(worker(is_live=False, left=1_000),))[-1] == (
        "  run run-7 is not at work any more: its lease ran out at 2026-01-05 13:00:00 UTC, and the"
        " next run takes up its 1,000 cells: bqh sync orders --changed"
    )
    assert lines(workers=(worker(is_live=False, left=0),)) == lines()
    both = lines(workers=(worker(is_live=False, left=2), worker(owner="run-8")))
    assert both[-2].endswith("takes up its 2 cells")


def test_another_declaration_comes_first_and_rows_outside_come_last() -> None:
    outside = OutsideRows(UNTIL, without_time=2, before_start=0, in_future=0)
    told = lines(declared_otherwise="says slices: 3", rows_outside=outside)
    assert told[1] == "  says slices: 3"
    assert told[-1].startswith("  not copied: 2 rows without ts")


def test_several_tables_follow_each_other() -> None:
    told = list(table_lines([status(table="a"), status(table="b")]))
    assert [line for line in told if "->" in line] == ["a -> Orders", "b -> Orders"]


def test_a_run_that_has_ended_is_told_as_such_while_its_lease_lasts() -> None:
    ended = {"run-7": "run run-7 was stopped"}
    assert lines(workers=(worker(left=2),), ended=ended)[-1] == (
        "  run run-7 was stopped; its lease ends at 13:00:00 UTC, and then the next run takes up"
        " its 2 cells: bqh sync orders --changed"
    )
    assert lines(workers=(worker(left=0),), ended=ended)[-1] == (
        "  run run-7 was stopped; its lease ends at 13:00:00 UTC"
    )
    both = lines(workers=(worker(left=2), worker(owner="run-8")), ended=ended)
    assert "bqh sync" not in "\n".join(both)


def test_cells_that_are_due_again_are_not_counted_as_synced() -> None:
    told = lines(due={"dirty": 1, "closed_since": 2, "failed": 4}, cells={"synced": 1_020})
    assert told[1].startswith("  1,017 of 1,024 cells of closed windows synced, and what was ")


def test_a_table_that_is_out_of_step_says_so_first_and_advises_no_sync() -> None:
    told = lines(
        out_of_step="the ledger is older", due={"failed": 1}, cells={"failed": 1, "refused": 1}
    )
    assert told[1] == "  out of step: the ledger is older"
    assert "bqh sync" not in "\n".join(told)
