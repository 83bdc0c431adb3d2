"""What a spot check says of the rows that it has compared, without a store."""

from dataclasses import replace
from typing import Any

import pytest

from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.validation.spot.compared_rows import ComparedRow, Outcome, Side
from bq_harper_assets.validation.spot.spot_verdict import verdict_of_rows
from bq_harper_assets.validation.verdict import (
    Difference,
    DifferenceKind,
    Severity,
    SpotStatus,
    Verdict,
)
from bq_harper_assets_tests.validation.spot.test_sampled_cells import commits

CELL: Cell = next(iter(commits(5)))
SAME = ComparedRow(CELL, Side.BIGQUERY, Outcome.SAME)
THERE = replace(SAME, side=Side.HARPER)
MISSING = Difference(DifferenceKind.MISSING, "a")


def verdict(*looks: ComparedRow, held: int = 5, crowded: int = 0, is_past: bool = True) -> Verdict:
    return verdict_of_rows(looks, {"asked": 10}, held, crowded, is_past=is_past)


def test_rows_that_are_the_same_on_both_sides_pass_with_their_counts() -> None:
    kept = replace(THERE, outcome=Outcome.KEPT)
    unstorable = replace(SAME, outcome=Outcome.UNSTORABLE)
    moved = replace(SAME, outcome=Outcome.MOVED)
    found = verdict(SAME, SAME, THERE, kept, unstorable, moved, moved, crowded=4)
    assert (found.check, found.status, found.passed) == ("spot", SpotStatus.HEALTHY, True)
    assert found.message == (
        "2 rows of BigQuery are in Harper and 2 rows of Harper in BigQuery, each the same in every"
        " column; 1 of these are gone from BigQuery, and stay as the contract wants it"
    )
    assert found.metadata == {
        "asked": 10,
        "rows_from_bigquery": 2,
        "rows_from_harper": 2,
        "rows_quarantined": 1,
        "rows_kept": 1,
        "rows_moved_meanwhile": 2,
        "crowded_times_left_out": 4,
        "read_at_commit": True,
    }
    assert verdict(SAME).message.endswith("each the same in every column")


@pytest.mark.parametrize(
    ("is_past", "severity", "more"),
    [
        (True, Severity.ERROR, ""),
        (
            *(False, Severity.WARN),
            ". BigQuery has no past of them, so they may have changed since the sync",
        ),
    ],
)
def test_a_row_that_differs_is_named_once_though_it_was_met_from_both_sides(
    is_past: bool, severity: Severity, more: str
) -> None:
    looks = [replace(look, outcome=Outcome.DIFFERENT, difference=MISSING) for look in (SAME, THERE)]
    found = verdict(*looks, SAME, is_past=is_past)
    assert (found.status, found.passed) == (SpotStatus.ISSUES_FOUND, False)
    assert found.severity is severity
    assert found.message == f"1 of 3 rows are not the same: missing a{more}"
    assert found.rows == (MISSING,)


@pytest.mark.parametrize(
    ("looks", "counts", "message", "passed"),
    [
        ([], {"held": 0}, "neither BigQuery nor Harper has a row there", True),
        (
            [replace(SAME, outcome=Outcome.UNSTORABLE)],
            {"held": 0},
            "the rows that were looked at are in quarantine",
            True,
        ),
        ([], {"held": 2_000}, "none of the 2,000 rows that were synced was met", False),
        (
            [],
            {"held": 2_000, "crowded": 1},
            "none of the 2,000 rows that were synced was met; times that more than 100,000 rows"
            " share are left out",
            False,
        ),
        (
            [replace(SAME, outcome=Outcome.MOVED)],
            {"held": 0},
            "a run was at work there while it was looked at",
            False,
        ),
    ],
)
def test_without_a_row_it_passes_only_if_there_is_none(
    looks: list[ComparedRow], counts: dict[str, Any], message: str, passed: bool
) -> None:
    found = verdict(*looks, **counts)
    assert (found.status, found.severity) == (SpotStatus.NO_DATA, Severity.WARN)
    assert (found.message, found.passed) == (message, passed)
