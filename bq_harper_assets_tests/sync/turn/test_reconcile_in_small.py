"""What a turn finds different is put right, marked first where it moves, and guarded."""

from typing import Any

import pytest

from bq_harper_assets.instants import micros_at
from bq_harper_assets.ledger.questions.status import CellRecord
from bq_harper_assets.ledger.records import CellState, Mode
from bq_harper_assets.sync.errors import TurnFailed
from bq_harper_assets.sync.plan.delete_guard import MOST_UNGUARDED_ROWS
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets_tests.sync.memory_source import DAY, HOUR, Small, ship


def total(report: TurnReport, what: str) -> int:
    return sum(getattr(cell.result, what) for cell in report.cells)


def records(small: Small) -> dict[tuple[int, int], CellRecord]:
    """What the ledger has of each cell, by hour and slice."""
    route = small.ledger.find_route("ships")
    assert route is not None
    found = small.ledger.cells(route, micros_at(DAY), micros_at(DAY + 24 * HOUR))
    return {((r.cell.window_start - DAY) // HOUR, r.cell.slice): r for r in found}


def marked(small: Small) -> set[int]:
    """The hours of which a cell is marked."""
    return {hour for (hour, _), record in records(small).items() if record.marks}


def test_a_cell_that_did_not_change_is_compared_and_not_written(small: Small) -> None:
    small.source.put(ship(1, 5), ship(2, 6), ship(3, 65))
    small.run(0, 1)
    report = small.run(0, 1)
    assert {cell.mode for cell in report.cells} == {Mode.RECONCILE}
    assert (total(report, "unchanged"), total(report, "written"), report.requests) == (3, 0, 0)


def test_new_changed_and_deleted_rows_are_put_right_and_no_other_is_written(small: Small) -> None:
    small.source.put(*(ship(n, n) for n in range(10)))
    small.run(0)
    batches = {row["n"]: row["_batch"] for row in small.harper.rows("Ships")}
    small.source.put(*(ship(n, n, "y" if n == 3 else "x") for n in range(1, 11) if n != 7))
    report = small.run(0)
    assert small.held == small.wanted
    assert (total(report, "written"), total(report, "deleted"), total(report, "held")) == (2, 2, 10)
    new = {row["n"] for row in small.harper.rows("Ships") if row["_batch"] != batches.get(row["n"])}
    assert new == {3, 10}


def test_values_that_somebody_changed_behind_the_stored_hash_are_found_by_a_deep_turn(
    small: Small,
) -> None:
    small.source.put(ship(1, 5), ship(2, 6))
    small.run(0)
    rows = small.harper.tables["Ships"].rows
    rows[1]["name"] = "bent"
    rows[2]["more"] = "somebody's"
    assert total(small.run(0), "written") == 0
    assert total(small.run(0, deep=True), "written") == 2
    assert small.held == small.wanted


def test_a_wrong_stored_hash_is_put_right_by_a_deep_turn(small: Small) -> None:
    small.source.put(ship(1, 5))
    small.run(0)
    stored = small.harper.tables["Ships"].rows[1]
    stored["_hash"], right = "0" * 13, stored["_hash"]
    small.run(0, deep=True)
    assert small.harper.rows("Ships")[0]["_hash"] == right


@pytest.mark.parametrize("asks_again", [False, True])
def test_a_row_that_moved_to_a_window_that_is_not_run_is_written_there_and_marked(
    small: Small, asks_again: bool
) -> None:
    small.source.put(ship(1, 5), ship(2, 6), ship(3, 65))
    small.run(0, 1, 2)
    small.source.has_past = not asks_again
    small.source.put(ship(1, 125), ship(2, 6), ship(3, 65))
    report = small.run(0)
    assert small.held == small.wanted
    assert (total(report, "moved"), total(report, "deleted")) == (1, 0)
    assert marked(small) == {2}
    small.run(2)
    assert small.held == small.wanted
    assert marked(small) == set()


def test_a_row_that_moves_on_while_its_query_is_run_again_is_marked_where_it_is_then(
    small: Small,
) -> None:
    small.source.has_past = False
    small.source.put(ship(1, 5), ship(2, 6))
    small.run(0, 1, 2)
    changed = [ship(2, 6)]  # row 1 is not in the kept result, and in the source of now
    small.source.put(*changed)
    small.source.while_asked_again = lambda: small.source.put(ship(1, 65), ship(2, 6))
    pinned = small.source.now
    small.source.history.append((pinned + HOUR, [ship(1, 65), ship(2, 6)]))
    small.run(0)
    assert small.source.now > pinned
    assert 2 in small.held


def test_a_row_that_came_from_another_window_marks_the_one_that_loses_it(small: Small) -> None:
    small.source.put(ship(1, 5), ship(2, 6), ship(3, 65))
    small.run(0, 1)
    small.source.put(ship(1, 66), ship(2, 6), ship(3, 65))
    small.run(1)
    assert small.held == small.wanted
    assert marked(small) == {0}
    small.run(0)
    assert marked(small) == set()


def test_a_row_that_leaves_every_window_is_deleted(small: Small) -> None:
    small.source.put(*(ship(n, n) for n in range(6)))
    small.run(0)
    early, late = ship(1, -60), ship(2, 24 * 60 + 30)
    small.source.put(early, late, {**ship(3, 0), "ts": None}, ship(4, 4))
    report = small.run(0)
    assert set(small.held) == {4}
    assert (total(report, "deleted"), total(report, "moved")) == (5, 0)


def many(first: int = 0) -> list[dict[str, Any]]:
    return [ship(n, n / 100) for n in range(first, MOST_UNGUARDED_ROWS + 50)]


def test_a_great_loss_is_refused_before_anything_is_written_and_done_if_it_is_allowed(
    small: Small,
) -> None:
    small.declare(slices=1)
    small.source.put(*many())
    small.run(0, 1)
    small.source.put(*many(MOST_UNGUARDED_ROWS + 1), ship(9_999, 65))
    requests = len(small.harper.asked)
    with pytest.raises(TurnFailed, match="would lose 1,001 of the 1,050 rows") as failed:
        small.run(0, 1)
    assert [cell.is_refused for cell in failed.value.report.cells] == [True, False]
    assert len(small.harper.rows("Ships")) == MOST_UNGUARDED_ROWS + 51
    assert not [asked for asked in small.harper.asked[requests:] if asked["operation"] == "delete"]
    assert records(small)[0, 0].state is CellState.REFUSED
    small.run(0, 1, allow_deletes=True)
    assert small.held == small.wanted
    assert records(small)[0, 0].state is CellState.SYNCED


def test_a_policy_that_keeps_rows_loses_none_and_is_not_guarded(small: Small) -> None:
    small.declare(slices=1, deletes="keep")
    small.source.put(*many())
    small.run(0)
    small.source.put(ship(1, 1))
    report = small.run(0)
    assert (total(report, "deleted"), total(report, "kept")) == (0, MOST_UNGUARDED_ROWS + 49)
    assert len(small.harper.rows("Ships")) == MOST_UNGUARDED_ROWS + 50


def test_flagged_rows_stay_and_are_not_gone_again(small: Small) -> None:
    small.declare(deletes="flag")
    small.source.put(ship(1, 1), ship(2, 2))
    small.run(0)
    small.source.put(ship(1, 1))
    assert total(small.run(0), "flagged") == 1
    assert [row["n"] for row in small.harper.rows("Ships") if row.get("_deletedAt")] == [2]
    assert total(small.run(0), "flagged") == 0
    small.source.put(ship(1, 1), ship(2, 2))
    small.run(0)
    assert [row["_deletedAt"] for row in small.harper.rows("Ships")] == [None, None]


def test_rows_past_their_retention_do_not_count_as_a_loss(small: Small) -> None:
    small.declare(slices=1, deletes_older_than="24h")
    small.source.put(*many(), ship(9_999, 65))
    small.run(0, 1)
    small.source.put(ship(9_999, 65))
    small.source.now = DAY + 25 * HOUR
    small.run(0)  # the window is older than 24 hours by then
    assert set(small.held) == {9_999}


def test_equal_rows_of_a_keyless_table_come_and_go_one_by_one(small: Small) -> None:
    small.declare(key=None)
    same = ship(1, 5)
    small.source.put(same, same, same)
    assert {cell.mode for cell in small.run(0).cells} == {Mode.NUMBER}
    assert len(small.harper.rows("Ships")) == 3
    small.source.put(same, same, same, same, ship(2, 6))
    assert total(small.run(0), "written") == 2
    small.source.put(same, ship(2, 6))
    assert total(small.run(0), "deleted") == 3
    assert sorted(row["n"] for row in small.harper.rows("Ships")) == [1, 2]


def test_a_keyless_row_that_changes_is_another_row(small: Small) -> None:
    small.declare(key=None)
    small.source.put(ship(1, 5), ship(2, 6))
    assert {cell.mode for cell in small.run(0).cells} == {Mode.COPY}
    small.source.put(ship(1, 65), ship(2, 6))
    report = small.run(0, 1)
    assert (total(report, "written"), total(report, "deleted"), total(report, "moved")) == (1, 1, 0)
    assert small.held == small.wanted
    assert marked(small) == set()
