"""The figures of a sync: they fit a terminal, cut no name and leave no kind of row out."""

from typing import Any

import pytest

from bq_harper_assets.cli.output.run_results import RunResults
from bq_harper_assets.cli.output.sync_summary import WIDTH, remarks, summary
from bq_harper_assets.defs.runs.launch import Launched


def ran(cells: int, seconds: float, **rows: int) -> RunResults:
    """One run, all rows of which are in its first cell."""
    figures: dict[str, Any] = {f"rows_{what}": count for what, count in rows.items()}
    done = {f"c{number}": figures if number == 0 else {} for number in range(cells)}
    return RunResults((Launched("run", done, None),), 1028, seconds)


def test_deleted_and_unchanged_rows_are_shown_and_no_name_is_cut() -> None:
    deleted = ran(1028, 201.25, read=18_018, unchanged=18_018, deleted=1_982)
    lines = list(summary([("vessel_positions", deleted), ("port_events", ran(4, 12.0))]))
    assert lines == [
        "       cells    read  written  unchanged  deleted  quarantined  seconds",
        "vessel_positions",
        "       1,028  18,018        0     18,018    1,982            0    201.2",
        "port_events",
        "  4 of 1,028       0        0          0        0            0     12.0",
    ]
    assert max(map(len, lines)) <= WIDTH


def test_a_short_name_stands_beside_its_figures() -> None:
    assert list(summary([("orders", ran(1028, 9.0, read=9_997, written=9_997))])) == [
        "table   cells   read  written  unchanged  deleted  quarantined  seconds",
        "orders  1,028  9,997    9,997          0        0            0      9.0",
    ]


def test_a_rate_is_told_only_of_what_was_read_and_rare_rows_only_where_there_are_some() -> None:
    assert list(remarks(ran(4, 10.0, deleted=3))) == []
    assert list(remarks(ran(4, 10.0, read=1_000, unchanged=1_000, flagged=2, moved=1))) == [
        "100 rows read per second",
        "2 rows that are gone from BigQuery were marked in _deletedAt",
        "1 rows live on in another window",
    ]


@pytest.mark.parametrize(("length", "beside"), [(16, True), (17, False)])
def test_a_line_of_exactly_80_characters_fits(length: int, beside: bool) -> None:
    name = "n" * length
    lines = list(summary([(name, ran(1028, 9.0))]))
    assert (len(lines) == 2) is beside
    assert max(map(len, lines)) == (80 if beside else 64)
