"""Which cells need work, and which of them are asked for first."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from bq_harper_assets.ledger.questions.status import CellCommit, CellRecord, GuardRefusal
from bq_harper_assets.ledger.records import CellKey, CellState
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.phases import Phase
from bq_harper_assets.sync.revisit.due_cells import (
    Due,
    Reason,
    WindowFingerprint,
    closed_until,
    due_cells,
    is_comparable,
)
from bq_harper_assets.sync.revisit.horizon import TableStanding, known_after, scrub_part
from bq_harper_assets.sync.revisit.pace import (
    FAILED_WAIT,
    LIVE_RUN,
    look_delay,
)
from bq_harper_assets.sync.revisit.run_requests import Ask, End, asks
from bq_harper_assets_tests.defs.test_partitions import contract
from bq_harper_assets_tests.stores.small_tables import utc

HOUR = timedelta(hours=1)
START = utc(2026, 11, 1)
T = utc(2026, 11, 16, 12)
WINDOW = Window(START, START + HOUR)


def record(state: CellState = CellState.SYNCED, **changed: Any) -> CellRecord:
    marks = changed.pop("marks", 0)
    refusal = GuardRefusal(T, 1, "refused") if state is CellState.REFUSED else None
    held = {
        "batch": 7,
        "t": T,
        "schema_version": 1,
        "rows": 5,
        "digest": "d",
        "fingerprint": "old",
        "committed_at": T,
        "upto": WINDOW.end,
        "is_closed": True,
    }
    commit = None if changed.pop("never", False) else CellCommit(**{**held, **changed})
    return CellRecord(
        cell=CellKey.of_window(WINDOW.start, WINDOW.end, 0),
        state=state,
        commit=commit,
        marks=marks,
        refusal=refusal,
    )


BEFORE, AFTER = T - HOUR, T + HOUR


@pytest.mark.parametrize(
    ("known", "seen", "reason"),
    [
        (None, None, Reason.MISSING),
        (record(CellState.TOUCHED, never=True), None, Reason.MISSING),
        (record(CellState.TOUCHED), None, Reason.DIRTY),
        (record(CellState.FAILED), None, Reason.FAILED),
        (record(CellState.PLANNED), None, Reason.PLANNED_LEFT),
        (record(CellState.REFUSED), None, Reason.REFUSED),
        (record(CellState.REFUSED), WindowFingerprint("refused", AFTER), Reason.REFUSED),
        (record(CellState.REFUSED), WindowFingerprint("new", AFTER), Reason.SOURCE_CHANGED),
        (record(CellState.REFUSED), WindowFingerprint("new", T), Reason.REFUSED),
        (record(CellState.REFUSED), WindowFingerprint("old", AFTER), Reason.SOURCE_CHANGED),
        (
            record(CellState.REFUSED, never=True),
            WindowFingerprint("new", AFTER),
            Reason.SOURCE_CHANGED,
        ),
        (
            record(CellState.REFUSED, never=True),
            WindowFingerprint("refused", AFTER),
            Reason.REFUSED,
        ),
        (record(marks=1), None, Reason.DIRTY),
        (record(is_closed=False, upto=WINDOW.start), None, Reason.CLOSED_SINCE),
        (record(), None, None),
        (record(), WindowFingerprint("old", AFTER), None),
        (record(), WindowFingerprint("new", AFTER), Reason.SOURCE_CHANGED),
        (record(), WindowFingerprint("new", BEFORE), None),
        (record(), WindowFingerprint("new", T), None),
    ],
)
def test_why_a_cell_needs_work(
    known: CellRecord | None, seen: WindowFingerprint | None, reason: Reason | None
) -> None:
    records = [known] if known else []
    due = due_cells([WINDOW], 1, records, seen={WINDOW.start: seen} if seen else None)
    assert [each.reason for each in due] == ([reason] if reason else [])
    assert [each.cell for each in due] == ([Cell(WINDOW, 0)] if reason else [])


@pytest.mark.parametrize(
    ("now", "reason"),
    [(None, Reason.REFUSED), (BEFORE, Reason.REFUSED), (T, Reason.FORGOTTEN)],
)
def test_a_refusal_that_only_others_caused_ends_when_they_are_forgotten(
    now: datetime | None, reason: Reason
) -> None:
    until_t = replace(record(CellState.REFUSED), refusal=GuardRefusal(T, 1, "refused", T))
    assert [each.reason for each in due_cells([WINDOW], 1, [until_t], now=now)] == [reason]
    [changed] = due_cells(
        [WINDOW], 1, [until_t], seen={START: WindowFingerprint("new", AFTER)}, now=now
    )
    assert changed.reason is Reason.SOURCE_CHANGED
    decided = record(CellState.REFUSED)
    assert [each.reason for each in due_cells([WINDOW], 1, [decided], now=AFTER)] == ["refused"]


def test_what_a_run_at_work_has_planned_is_not_left_over() -> None:
    planned = record(CellState.PLANNED)
    assert due_cells([WINDOW], 1, [planned], at_work=[planned.cell]) == []
    another = replace(planned.cell, slice=1)
    assert len(due_cells([WINDOW], 1, [planned], at_work=[another])) == 1


def test_windows_close_a_safety_lag_after_they_end() -> None:
    table = contract(safety_lag="90s")
    assert closed_until(table, utc(2026, 11, 16, 13, 1, 29)) == utc(2026, 11, 16, 12)
    assert closed_until(table, utc(2026, 11, 16, 13, 1, 30)) == utc(2026, 11, 16, 13)


def hours(*numbers: int, reason: Reason = Reason.MISSING, slices: int = 1) -> list[Due]:
    return [
        Due(Cell(Window(START + n * HOUR, START + (n + 1) * HOUR), number), reason)
        for n in numbers
        for number in range(slices)
    ]


def hour(number: int) -> Window:
    return hours(number)[0].cell.window


def asked(found: Sequence[Ask]) -> dict[End, list[int]]:
    return {ask.end: [(window.start - START) // HOUR for window in ask.windows] for ask in found}


def test_a_look_replaces_all_that_was_known_of_what_it_looked_at() -> None:
    before = {START + n * HOUR: WindowFingerprint("before", T) for n in range(4)}
    found = {START + 2 * HOUR: WindowFingerprint("now", AFTER)}
    known = known_after(before, [(START + HOUR, START + 3 * HOUR)], found)
    assert {(at - START) // HOUR: seen.fingerprint for at, seen in known.items()} == {
        0: "before",
        2: "now",
        3: "before",
    }


@pytest.mark.parametrize(
    ("known", "seen", "sign"),
    [
        (None, None, "0/0"),
        (record(CellState.FAILED, never=True, marks=3), None, "0/3"),
        (record(marks=1), None, "7/1"),
        (record(CellState.FAILED), WindowFingerprint("new", AFTER), "7/0"),
        (record(), WindowFingerprint("new", AFTER), "new"),
    ],
)
def test_a_need_is_told_from_an_earlier_one_by_its_batch_and_marks_or_its_fingerprint(
    known: CellRecord | None, seen: WindowFingerprint | None, sign: str
) -> None:
    records = [known] if known else []
    [due] = due_cells([WINDOW], 1, records, seen={START: seen} if seen else None)
    assert due.sign == sign


def test_every_slice_of_every_window_is_due_in_order() -> None:
    windows = [hour(0), hour(1)]
    cells = [each.cell for each in due_cells(windows, 2, [])]
    assert cells == [Cell(window, number) for window in windows for number in (0, 1)]


@pytest.mark.parametrize(
    ("known", "comparable"),
    [
        (record(), True),
        (record(marks=1), False),
        (record(CellState.TOUCHED), False),
        (record(never=True), False),
        (record(is_closed=False), False),
        (record(CellState.REFUSED), True),
        (record(CellState.REFUSED, never=True), True),
        (record(CellState.FAILED), False),
    ],
)
def test_only_a_clean_closed_cell_or_a_refused_one_is_compared_with_the_source(
    known: CellRecord, comparable: bool
) -> None:
    assert is_comparable(known) is comparable


def test_due_cells_are_counted_by_reason() -> None:
    due = (*hours(1, 2), *hours(3, reason=Reason.DIRTY))
    standing = TableStanding(Phase.STEADY, due, T)
    assert standing.by_reason == {Reason.MISSING: 2, Reason.DIRTY: 1}


def test_a_scrub_begins_anew_where_nothing_old_is_left_or_the_start_has_moved() -> None:
    table = contract(revisit="24h")
    until = START + timedelta(days=3)
    older_until = until - timedelta(days=1)

    def begin(scrubbed_to: datetime | None) -> datetime:
        part = scrub_part(table, START, until, scrubbed_to)
        assert part is not None
        return part.begin

    assert begin(None) == begin(START - HOUR) == begin(START) == begin(older_until) == START
    assert begin(older_until - HOUR) == older_until - HOUR


def test_a_run_takes_eight_neighbours_of_a_steady_table_or_else_the_newest_four() -> None:
    for count, taken in ((8, range(8)), (9, range(5, 9))):
        [ask] = asks(hours(*range(count), reason=Reason.DIRTY), Phase.STEADY, hour(40))
        assert asked([ask]) == {End.NEWEST: list(taken)}


def test_a_request_names_each_reason_once_and_has_a_short_key() -> None:
    due = (*hours(2, 1, slices=2), *hours(3, reason=Reason.DIRTY))
    ask = Ask(End.NEWEST, due)
    assert ask.reasons == "dirty, missing"
    assert ask.windows == (hour(1), hour(2), hour(3))
    assert re.search(r"\|[0-9a-f]{16}\|\d+$", ask.key(T))


def test_the_source_is_compared_once_per_window_but_every_hour_at_least() -> None:
    delays = [look_delay(contract(window=window)) for window in ("15m", "60m", "1d")]
    assert delays == [HOUR / 4, HOUR, HOUR]


def test_failed_windows_wait_half_an_hour_and_a_live_run_lasts_a_quarter() -> None:
    assert (FAILED_WAIT, LIVE_RUN) == (HOUR / 2, HOUR / 4)


def test_a_look_at_several_ranges_replaces_what_was_known_of_each() -> None:
    before = {START + n * HOUR: WindowFingerprint("before", T) for n in range(3)}
    ranges = [(START, START + HOUR), (START + 2 * HOUR, START + 3 * HOUR)]
    assert list(known_after(before, ranges, {})) == [START + HOUR]


def test_a_single_old_window_is_scrubbed_too() -> None:
    part = scrub_part(contract(revisit="0s"), START, START + HOUR, None)
    assert part is not None
    assert (part.begin, part.end, part.after) == (START, START + HOUR, START)
