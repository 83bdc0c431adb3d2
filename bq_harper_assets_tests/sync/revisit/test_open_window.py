"""The open window is polled, and once it has closed it is reconciled."""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.instants import micros_at
from bq_harper_assets.ledger.errors import Holder, LeaseHeld
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import CellResult, Mode, Rejection, Wanted
from bq_harper_assets.retries.retry import Call
from bq_harper_assets.stores.harper.errors import HarperUnavailable
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.errors import TurnFailed, WindowStillOpen
from bq_harper_assets.sync.phases import Phase
from bq_harper_assets.sync.protocols import TableAction
from bq_harper_assets.sync.revisit.open_window import (
    Live,
    left_open,
    open_window,
)
from bq_harper_assets.sync.turn.report import CellReport, TurnReport
from bq_harper_assets_tests.defs.test_partitions import contract
from bq_harper_assets_tests.ledger.sample import (
    FACTS,
    HOUR,
    START,
    TTL,
    T,
    cell,
    commit_cell,
    copy,
    result,
)
from bq_harper_assets_tests.stores.small_tables import utc

NOON = utc(2026, 11, 16, 12)
MINUTE = timedelta(minutes=1)


@dataclass
class Clock:
    """Moves only when somebody sleeps."""

    now: datetime
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += timedelta(seconds=seconds)


def report(table: TableContract, t: datetime, cells: Sequence[Cell], **changed: Any) -> TurnReport:
    """As if each poll had read and written one row per cell."""
    upto = t - table.safety_lag
    result = CellResult(read=1, written=1, unchanged=0, quarantined=0, digest="d")
    reports = tuple(
        CellReport(
            cell=cell,
            mode=Mode.TOPUP,
            batch=1,
            result=result,
            problem=changed.get("problem"),
            upto=min(micros_at(upto), cell.window.axis_end),
        )
        for cell in cells
    )
    phase = changed.get("phase", Phase.STEADY)
    transient = changed.get("transient", False)
    action = TableAction.UP_TO_DATE
    return TurnReport(
        table=table.id,
        t=t,
        phase=phase,
        table_action=action,
        schema_version=1,
        cells=reports,
        requests=1,
        retries=0,
        seconds=0.5,
        is_transient=transient,
    )


def followed(
    ledger: Ledger,
    until: datetime,
    polls: Callable[[datetime, Sequence[Cell]], TurnReport],
    **declared: Any,
) -> tuple[Live, Clock, bool]:
    table = contract(slices=2, safety_lag="60s", **declared)
    clock = Clock(NOON + 50 * MINUTE + timedelta(seconds=10))
    live = Live(
        sync=lambda cells: polls(clock.now, cells),
        contract=table,
        ledger=ledger,
        sleep=clock.sleep,
        now=lambda: clock.now,
    )
    return live, clock, live.follow(until)


def test_a_live_run_polls_until_its_window_has_closed_and_is_reconciled(ledger: Ledger) -> None:
    table = contract(slices=2, safety_lag="60s")
    live, clock, closed = followed(
        ledger, NOON + 120 * MINUTE, lambda now, cells: report(table, now, cells)
    )
    assert closed
    assert clock.now == NOON + 61 * MINUTE  # a safety lag after the end, without delay
    assert clock.slept == [30.0] * 21 + [20.0]
    assert live.polls == 23
    total = live.total()
    assert total is not None
    window = open_window(table, NOON + MINUTE)
    assert [cell.cell for cell in total.cells] == [Cell(window, 0), Cell(window, 1)]
    assert [cell.result.written for cell in total.cells] == [23, 23]
    assert not any(cell.is_open for cell in total.cells)
    assert (total.requests, total.seconds, total.t) == (23, 11.5, clock.now)


def test_the_figures_of_all_polls_add_up_as_those_of_one_run_do(ledger: Ledger) -> None:
    table = contract(slices=2, safety_lag="60s")

    def with_all_kinds(now: datetime, cells: Sequence[Cell]) -> TurnReport:
        told = report(table, now, cells)
        rejected = (Rejection("7", "NaN", "{}"),)
        result = CellResult(
            read=6,
            written=3,
            unchanged=2,
            quarantined=1,
            digest="d",
            deleted=1,
            moved=1,
            flagged=1,
            kept=1,
            held=9,
            rejections=rejected,
            bytes=700,
            seconds=0.25,
        )
        polled = tuple(replace(each, result=result) for each in told.cells)
        return replace(told, cells=polled)

    live, _, _ = followed(ledger, NOON + 51 * MINUTE, with_all_kinds)
    total = live.total()
    assert total is not None
    for summed in [each.result for each in total.cells]:
        assert summed.read == summed.written + summed.unchanged + summed.quarantined
        assert summed.quarantined == len(summed.rejections) == live.polls > 1
        assert summed.kept == summed.flagged == summed.moved == summed.deleted == live.polls
        assert summed.held == 9  # by the target before the first poll
        assert (summed.bytes, summed.seconds) == (700 * live.polls, 0.25 * live.polls)


def test_a_live_run_ends_after_its_time_and_one_that_is_behind_polls_more_often(
    ledger: Ledger,
) -> None:
    table = contract(slices=2, safety_lag="60s")
    live, clock, closed = followed(
        ledger,
        NOON + 51 * MINUTE,
        lambda now, cells: report(table, now, cells, phase=Phase.CATCHUP),
    )
    assert not closed
    assert clock.slept == [10.0] * 4
    total = live.total()
    assert total is not None
    assert all(cell.is_open for cell in total.cells)


def test_polls_that_take_long_leave_a_pause_in_which_a_backfill_gets_the_lease(
    ledger: Ledger,
) -> None:
    table = contract(slices=2, safety_lag="60s")
    clock = Clock(NOON + 50 * MINUTE)

    def slow(cells: Sequence[Cell]) -> TurnReport:
        clock.now += MINUTE
        return report(table, clock.now, cells)

    live = Live(sync=slow, contract=table, ledger=ledger, sleep=clock.sleep, now=lambda: clock.now)
    assert not live.follow(NOON + 58 * MINUTE)
    assert clock.slept == [3.0] * 7


def test_a_poll_that_ends_as_the_window_closes_leaves_the_pause_too(ledger: Ledger) -> None:
    table = contract(slices=2, safety_lag="60s")
    clock = Clock(NOON + 60 * MINUTE)

    def slow(cells: Sequence[Cell]) -> TurnReport:
        began, clock.now = clock.now, clock.now + MINUTE
        return report(table, began, cells)

    live = Live(sync=slow, contract=table, ledger=ledger, sleep=clock.sleep, now=lambda: clock.now)
    assert live.follow(NOON + 70 * MINUTE)
    assert clock.slept == [3.0]


def test_a_window_is_followed_until_each_of_its_cells_is_closed(ledger: Ledger) -> None:
    table = contract(slices=2, safety_lag="60s")

    def polls(now: datetime, cells: Sequence[Cell]) -> TurnReport:
        told = report(table, now, cells)
        first, *others = reversed(told.cells)
        # One of the two is ten seconds behind the other.
        late = replace(first, upto=min(first.upto, micros_at(now - timedelta(seconds=70))))
        return replace(told, cells=(late, *others))

    live, clock, closed = followed(ledger, NOON + 70 * MINUTE, polls)
    assert closed
    assert clock.now > NOON + 61 * MINUTE
    total = live.total()
    assert total is not None
    assert [each.cell.slice for each in total.cells] == [0, 1]


def test_each_poll_that_has_to_wait_says_why(ledger: Ledger) -> None:
    table = contract(slices=2, safety_lag="60s")
    clock = Clock(NOON + 50 * MINUTE)
    said: list[str] = []
    away = HarperUnavailable(Call("Harper", "writing"), "answered 503")
    errors: list[Exception] = [WindowStillOpen("a moment too early"), away]

    def polls(cells: Sequence[Cell]) -> TurnReport:
        if errors:
            raise errors.pop(0)
        return report(table, clock.now, cells)

    live = Live(
        sync=polls,
        contract=table,
        ledger=ledger,
        say=said.append,
        sleep=clock.sleep,
        now=lambda: clock.now,
    )
    live.follow(NOON + 52 * MINUTE)
    assert said == [
        "waits for the next poll: a moment too early",
        f"tries again at the next poll: {away}",
    ]


def test_a_lease_that_another_run_holds_costs_the_poll_and_not_the_run(ledger: Ledger) -> None:
    table = contract(slices=2, safety_lag="60s")
    held = LeaseHeld(
        "ships", [Holder(slice=0, owner="backfill", epoch=1, until=NOON + 55 * MINUTE)]
    )
    early = WindowStillOpen("a moment too early")

    def polls(now: datetime, cells: Sequence[Cell]) -> TurnReport:
        if now < NOON + 55 * MINUTE:
            raise held if now < NOON + 53 * MINUTE else early
        return report(table, now, cells)

    live, _, closed = followed(ledger, NOON + 70 * MINUTE, polls)
    assert closed
    assert len(live.reports) == live.polls - 10


def test_a_live_run_that_waits_for_a_backfill_says_one_sentence_and_asks_nobody_to_type_anything(
    ledger: Ledger,
) -> None:
    table = contract(slices=4, safety_lag="60s")
    moved = ledger.register_route(FACTS)
    backfill = ledger.acquire(moved, range(4), "run-of-a-backfill", TTL)
    since = ledger.leases(moved)[0].acquired_at
    said: list[str] = []
    clock = Clock(NOON + 50 * MINUTE)

    def polls(cells: Sequence[Cell]) -> TurnReport:
        if live.polls == 3:
            ledger.release(backfill)
        taken = ledger.acquire(moved, [cell.slice for cell in cells], "live-run", TTL)
        ledger.release(taken)
        return report(table, clock.now, cells)

    live = Live(
        sync=polls,
        contract=table,
        ledger=ledger,
        say=said.append,
        sleep=clock.sleep,
        now=lambda: clock.now,
    )
    live.follow(NOON + 53 * MINUTE)
    assert len(live.reports) == live.polls - 2
    assert said == 2 * [
        f"positions is being moved by run run-of-a-backfill on {socket.gethostname()} since "
        f"{since:%F %T} UTC; this live run waits, and goes on by itself at its next poll"
    ]


def test_only_a_poll_that_has_looked_is_told_of_and_an_empty_one_has(ledger: Ledger) -> None:
    table = contract(slices=2, safety_lag="60s")
    clock = Clock(NOON + 50 * MINUTE)
    looked: list[int] = []

    def polls(cells: Sequence[Cell]) -> TurnReport:
        if live.polls == 1:
            raise LeaseHeld(
                "ships", [Holder(slice=0, owner="backfill", epoch=1, until=NOON + 55 * MINUTE)]
            )
        if live.polls == 2:
            raise HarperUnavailable(Call("Harper", "writing"), "503")
        if live.polls == 3:
            raise TurnFailed(report(table, clock.now, cells, problem="503", transient=True))
        if live.polls == 4:
            some, other = (report(table, clock.now, cells, problem=p).cells for p in (None, "503"))
            half = replace(report(table, clock.now, cells), cells=(some[0], other[1]))
            raise TurnFailed(replace(half, is_transient=True))
        return replace(report(table, clock.now, cells), requests=0)

    live = Live(
        sync=polls,
        contract=table,
        ledger=ledger,
        after_look=lambda report: looked.append(live.polls),
        sleep=clock.sleep,
        now=lambda: clock.now,
    )
    live.follow(NOON + 53 * MINUTE)
    assert live.polls == 6
    assert looked == [4, 5, 6]


@pytest.mark.parametrize("as_report", [False, True])
def test_a_store_that_stays_away_ends_the_run_and_one_that_comes_back_does_not(
    ledger: Ledger, as_report: bool
) -> None:
    table = contract(slices=2, safety_lag="60s")
    away = 0

    def polls(now: datetime, cells: Sequence[Cell]) -> TurnReport:
        nonlocal away
        away -= 1
        if away < 0:
            return report(table, now, cells)
        if as_report:
            raise TurnFailed(report(table, now, cells, problem="503", transient=True))
        raise HarperUnavailable(Call("Harper", "writing"), "503")

    away = 4
    live, _, closed = followed(ledger, NOON + 70 * MINUTE, polls)
    assert closed
    assert live.polls == 23
    away = 0
    polled = 0

    def flickering(now: datetime, cells: Sequence[Cell]) -> TurnReport:
        nonlocal away, polled
        polled += 1
        if polled % 5:
            away = 1
        return polls(now, cells)

    assert followed(ledger, NOON + 70 * MINUTE, flickering)[2]
    away = 5
    with pytest.raises(BqhError, match="503"):
        followed(ledger, NOON + 70 * MINUTE, polls)


def test_what_trying_again_cannot_help_ends_the_run_and_what_was_done_is_known(
    ledger: Ledger,
) -> None:
    table = contract(slices=2, safety_lag="60s")
    clock = Clock(NOON + 50 * MINUTE)
    first = True

    def polls(cells: Sequence[Cell]) -> TurnReport:
        nonlocal first
        if first:
            first = False
            return report(table, clock.now, cells)
        raise TurnFailed(report(table, clock.now, cells, problem="refused"))

    live = Live(sync=polls, contract=table, ledger=ledger, sleep=clock.sleep, now=lambda: clock.now)
    with pytest.raises(TurnFailed):
        live.follow(NOON + 70 * MINUTE)
    total = live.total()
    assert total is not None
    assert [cell.result.written for cell in total.cells] == [1, 1]


def test_the_open_window_is_the_one_that_holds_the_newest_rows_to_be_synced() -> None:
    table = contract(safety_lag="60s")
    assert open_window(table, NOON + MINUTE).key == "2026-11-16T12:00"
    assert open_window(table, NOON + timedelta(seconds=59)).key == "2026-11-16T11:00"


def test_a_window_that_was_left_open_is_taken_along_but_not_one_that_was_refused(
    ledger: Ledger,
) -> None:
    table = contract()
    window = Window(START + HOUR, START + 2 * HOUR)
    assert left_open(ledger, table, window) == []
    known = ledger.register_route(replace(FACTS, name=table.id, table=table.id))
    version = ledger.record_schema(known, {}, 0).version
    leases = ledger.acquire(known, [0], "run", TTL)
    half = Wanted(cell=cell(), mode=Mode.COPY, fingerprint="fp", upto=START + HOUR / 2)
    (batch,) = ledger.plan(leases, T, version, [half], "run")
    commit_cell(ledger, leases, batch, result())
    assert left_open(ledger, table, window) == [Window(START, START + HOUR)]
    (batch,) = ledger.plan(leases, T + MINUTE, version, [copy(cell())], "run")
    ledger.refuse_batch(batch, "would lose too much")
    assert left_open(ledger, table, window) == []
    (batch,) = ledger.plan(leases, T + 2 * MINUTE, version, [copy(cell())], "run")
    commit_cell(ledger, leases, batch, result())
    assert left_open(ledger, table, window) == []


def test_a_window_is_not_taken_along_while_the_guard_refuses_one_of_its_cells(
    ledger: Ledger,
) -> None:
    table = contract()
    window = Window(START + HOUR, START + 2 * HOUR)
    known = ledger.register_route(replace(FACTS, name=table.id, table=table.id))
    version = ledger.record_schema(known, {}, 0).version
    leases = ledger.acquire(known, [0, 1], "run", TTL)
    halves = [
        Wanted(cell=cell(0, slice=n), mode=Mode.COPY, fingerprint="fp", upto=START + HOUR / 2)
        for n in range(2)
    ]
    first, second = ledger.plan(leases, T, version, halves, "run")
    commit_cell(ledger, leases, first, result())
    ledger.refuse_batch(second, "would lose too much")
    assert left_open(ledger, table, window) == []
