"""In which runs the cells that need work are asked for, and which of them first."""

from datetime import datetime, timedelta

from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.phases import Phase
from bq_harper_assets.sync.revisit.due_cells import (
    Due,
    Reason,
)
from bq_harper_assets.sync.revisit.pace import (
    NEWEST_WINDOWS,
    WINDOWS_PER_RUN,
)
from bq_harper_assets.sync.revisit.run_requests import Ask, End, asks
from bq_harper_assets_tests.sync.revisit.test_due_cells import WINDOW, T, asked, hour, hours


def test_after_an_outage_all_missing_windows_come_in_one_run() -> None:
    found = asks(hours(*range(12, 24), slices=4), Phase.INITIAL, hour(23))
    assert asked(found) == {End.NEWEST: list(range(12, 24))}
    assert len(found[0].cells) == 48


def test_a_long_backlog_is_taken_oldest_first_and_the_newest_do_not_wait_for_it() -> None:
    backlog = hours(*range(1000))
    first = asks(backlog, Phase.INITIAL, hour(999))
    most = WINDOWS_PER_RUN[Phase.INITIAL]
    newest = list(range(1000 - NEWEST_WINDOWS, 1000))
    assert asked(first) == {End.NEWEST: newest, End.OLDEST: list(range(most))}
    at_work = [window for ask in first for window in ask.windows]
    assert asks(backlog, Phase.INITIAL, hour(999), at_work, [End.NEWEST, End.OLDEST]) == []
    by_hand = [hour(number) for number in range(most)]
    beside = asks(backlog, Phase.INITIAL, hour(999), by_hand)
    assert asked(beside) == {End.NEWEST: newest, End.OLDEST: list(range(most, 2 * most))}

    runs = 0
    while backlog:
        for ask in asks(backlog, Phase.INITIAL, hour(999)):
            backlog = [due for due in backlog if due.cell.window not in ask.windows]
            runs += 1
    assert runs == 1 + -(-(1000 - NEWEST_WINDOWS) // most)


def test_the_backlog_goes_on_behind_windows_that_fail_and_comes_back_to_them() -> None:
    failing, backlog = {hour(0), hour(1), hour(60)}, hours(*range(100))
    failed: set[Window] = set()
    order = []
    for _ in range(9):
        for ask in asks(backlog, Phase.CATCHUP, hour(200), failed=failed):
            order += [asked([ask])[End.OLDEST]]
            failed = failed - set(ask.windows) | (failing & set(ask.windows))
            done = set(ask.windows) - failing
            backlog = [due for due in backlog if due.cell.window not in done]
    first = [list(range(24)), list(range(24, 48)), list(range(48, 72)), list(range(72, 96))]
    assert order[:5] == [*first, list(range(96, 100))]
    assert order[5:] == [[0, 1]] * 4  # what fails is all that is left, and is tried again


def test_a_run_that_failed_as_a_whole_keeps_neither_end_waiting() -> None:
    due = [*hours(*range(300)), *hours(310, 320, 330, reason=Reason.SOURCE_CHANGED)]
    failed = {window for ask in asks(due, Phase.INITIAL, hour(330)) for window in ask.windows}
    found = asks(due, Phase.INITIAL, hour(330), failed=failed)
    assert asked(found) == {End.NEWEST: [320], End.OLDEST: list(range(96, 192))}
    found = asks(hours(1, 2, 330), Phase.INITIAL, hour(330), failed=[hour(1), hour(330)])
    assert asked(found) == {End.OLDEST: [2], End.NEWEST: [330]}


def test_what_changed_comes_newest_first_and_only_neighbours_share_a_run() -> None:
    changed = hours(3, 4, 9, 20, 21, reason=Reason.SOURCE_CHANGED)
    order = []
    while changed:
        [ask] = asks(changed, Phase.STEADY, hour(30))
        order += [asked([ask])[End.NEWEST]]
        changed = [due for due in changed if due.cell.window not in ask.windows]
    assert order == [[20, 21], [9], [3, 4]]


def test_a_steady_table_takes_few_windows_at_once() -> None:
    [ask] = asks(hours(*range(30), reason=Reason.DIRTY), Phase.STEADY, hour(40))
    assert asked([ask]) == {End.NEWEST: list(range(30 - NEWEST_WINDOWS, 30))}


def test_refused_cells_are_never_asked_for() -> None:
    due = [*hours(1, 2, reason=Reason.REFUSED), *hours(3, 5)]
    assert asked(asks(due, Phase.STEADY, hour(5))) == {End.NEWEST: [5], End.OLDEST: [3]}
    assert asks(hours(1, reason=Reason.REFUSED), Phase.STEADY, hour(1)) == []


def test_the_same_need_has_the_same_key_for_a_while_and_another_need_has_another() -> None:
    def key(sign: str, at: datetime) -> str:
        due = (Due(Cell(WINDOW, 0), Reason.SOURCE_CHANGED, sign),)
        return Ask(End.NEWEST, due).key(at)

    assert key("a", T) == key("a", T + timedelta(seconds=299))
    assert key("a", T) != key("a", T + timedelta(seconds=300))
    assert key("a", T) != key("b", T)
    assert key("a", T).startswith("2026-11-01T00:00...2026-11-01T00:00|")
