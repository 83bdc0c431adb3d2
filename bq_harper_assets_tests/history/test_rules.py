"""One scene per rule of the protocol: what happens exactly where the rule is needed.

Most of them say nothing of the target: a world watches it after every write and every commit.
"""

from datetime import timedelta

import pytest

from bq_harper_assets.ledger.errors import LeaseHeld, LeaseLost, PlanRefused
from bq_harper_assets.ledger.records import Mode
from bq_harper_assets.sync.errors import TurnFailed
from bq_harper_assets_tests.history.placing import Placing
from bq_harper_assets_tests.history.source import BAD, Row
from bq_harper_assets_tests.history.stage import STOPS, StagedRun, killed_at
from bq_harper_assets_tests.history.watch import LAG
from bq_harper_assets_tests.history.world import D_S, START, TTL_S, WINDOW, World

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]


def row(n: int, window: int, v: float = 1.0, second: float = 7.0) -> Row:
    """In a window counted from the start."""
    return Row(n, START + window * WINDOW + timedelta(seconds=second), v, "a")


def put(world: World, *rows: Row) -> None:
    """Inserted or changed."""
    world.source.replace(*rows)


def of_slice(part: int, count: int) -> list[int]:
    """The first keys that belong to one of two slices."""
    placing = Placing(keyed=True, slices=2)
    return [n for n in range(1, 50) if placing.of_id(n) == part][:count]


def ended_well(*staged: StagedRun) -> None:
    for each in staged:
        assert each.is_over
        assert each.error is None, each.error


def pass_over_what_is_due(world: World) -> None:
    """Afterwards Harper equals BigQuery."""
    world.fate = lambda staged, seen: "answered"
    world.move_clock(TTL_S + 3 * WINDOW.total_seconds())
    world.pass_over_due()


def fates(world: World, *given: str) -> None:
    """Of the next writes; all later ones are answered."""
    left = list(given)
    world.fate = lambda staged, seen: left.pop(0) if left else "answered"


def stalls(world: World, staged: StagedRun, seconds: float) -> None:
    """Its lease is not renewed any more."""
    staged.stalled_until = world.clock.now + timedelta(days=1)
    world.move_clock(seconds)


def test_a_commit_after_the_lease_was_lost_is_refused(keyed: World) -> None:
    put(keyed, row(1, 0), row(2, 0))
    slow = keyed.start(keyed.cells(0, 0))
    keyed.run_until(slow, "before commit_cells")
    stalls(keyed, slow, TTL_S + 1)
    put(keyed, row(1, 1))
    ended_well(keyed.sync(keyed.cells(1, 1)))
    keyed.finish(slow)
    assert isinstance(slow.error, LeaseLost)
    pass_over_what_is_due(keyed)


def test_a_killed_runs_lease_is_taken_only_when_it_has_expired(keyed: World) -> None:
    put(keyed, row(1, 0))
    fates(keyed, "late")
    dead = keyed.start(keyed.cells(0, 0))
    keyed.run_until(dead, "wait")
    keyed.kill(dead)
    put(keyed, row(1, 0, 2.5))
    early = keyed.sync(keyed.cells(0, 0))
    keyed.move_clock(D_S)
    assert isinstance(early.error, LeaseHeld)
    pass_over_what_is_due(keyed)


def test_a_run_that_stood_still_past_its_lease_sends_nothing_more(keyed: World) -> None:
    put(keyed, row(1, 0), row(2, 0), row(3, 0))
    slow = keyed.start(keyed.cells(0, 0))
    keyed.run_until(slow, "after upsert")
    stalls(keyed, slow, TTL_S + 1)
    put(keyed, *(row(n, 0, 2.5) for n in (1, 2, 3)))
    ended_well(keyed.sync(keyed.cells(0, 0)))
    keyed.finish(slow)
    assert slow.error is not None
    pass_over_what_is_due(keyed)


def test_a_request_is_not_sent_if_its_effect_may_outlast_the_lease(keyed: World) -> None:
    put(keyed, row(1, 0), row(2, 0), row(3, 0))
    slow = keyed.start(keyed.cells(0, 0))
    fates(keyed, "answered", "late")
    keyed.run_until(slow, "after upsert")
    stalls(keyed, slow, TTL_S - 10)
    keyed.step(slow)
    keyed.kill(slow)
    keyed.move_clock(11)
    put(keyed, *(row(n, 0, 2.5) for n in (1, 2, 3)))
    ended_well(keyed.sync(keyed.cells(0, 0)))
    keyed.move_clock(D_S)
    pass_over_what_is_due(keyed)


def test_a_lease_is_not_given_back_while_a_request_is_unanswered(keyed: World) -> None:
    """A retry that worked does not call the first try back."""
    put(keyed, row(1, 0))
    fates(keyed, "late")
    ended_well(keyed.sync(keyed.cells(0, 0)))
    put(keyed, row(1, 0, 2.5))
    early = keyed.sync(keyed.cells(0, 0))
    keyed.move_clock(D_S)
    assert isinstance(early.error, LeaseHeld)
    pass_over_what_is_due(keyed)


def test_a_deadline_counts_from_when_the_lease_was_asked_for(keyed: World) -> None:
    put(keyed, row(1, 0), row(2, 0), row(3, 0))
    slow = keyed.start(keyed.cells(0, 0))
    keyed.slow_ledger_s = lambda: 60.0
    keyed.run_until(slow, "after acquire")
    keyed.slow_ledger_s = lambda: 0.0
    keyed.run_until(slow, "after upsert")
    stalls(keyed, slow, TTL_S - 59)
    put(keyed, *(row(n, 0, 2.5) for n in (1, 2, 3)))
    ended_well(keyed.sync(keyed.cells(0, 0)))
    keyed.finish(slow)
    assert slow.error is not None
    pass_over_what_is_due(keyed)


def test_a_cell_that_a_killed_run_may_have_written_is_not_copied(keyed: World) -> None:
    put(keyed, row(1, 0), row(2, 0))
    dead = keyed.start(keyed.cells(0, 0))
    keyed.run_until(dead, "before commit_cells")
    keyed.kill(dead)
    keyed.source.delete(1)
    keyed.move_clock(TTL_S + 1)
    ended_well(keyed.sync(keyed.cells(0, 0)))
    pass_over_what_is_due(keyed)


def test_a_committed_cell_is_not_copied_again(keyed: World) -> None:
    put(keyed, row(1, 0), row(2, 0))
    ended_well(keyed.sync(keyed.cells(0, 0)))
    keyed.source.delete(1)
    ended_well(keyed.sync(keyed.cells(0, 0)))
    pass_over_what_is_due(keyed)


def test_a_row_at_the_very_start_of_a_window_belongs_to_it(keyed: World) -> None:
    put(keyed, row(1, 1, second=0), row(2, 1, second=299.999999), row(3, 2, second=0))
    ended_well(keyed.sync(keyed.cells(0, 1)))
    pass_over_what_is_due(keyed)


def test_rows_of_other_windows_are_left_alone(keyless: World) -> None:
    put(keyless, row(1, 0), row(2, 1))
    ended_well(keyless.sync(keyless.cells(0, 1)))
    put(keyless, row(3, 0))
    ended_well(keyless.sync(keyless.cells(0, 0)))
    pass_over_what_is_due(keyless)


def test_a_row_that_moved_is_never_absent(keyed: World) -> None:
    put(keyed, row(1, 0), row(2, 0))
    ended_well(keyed.sync(keyed.cells(0, 1)))
    put(keyed, row(1, 1))
    ended_well(keyed.sync(keyed.cells(0, 0)))
    pass_over_what_is_due(keyed)


def test_a_cell_that_gets_a_row_from_another_is_marked_first(keyed: World) -> None:
    put(keyed, row(1, 0), row(2, 1))
    ended_well(keyed.sync(keyed.cells(0, 1)))
    put(keyed, row(1, 1))
    giving = keyed.start(keyed.cells(0, 0))
    keyed.run_until(giving, "after upsert")
    keyed.kill(giving)
    keyed.move_clock(TTL_S + 1)
    put(keyed, row(1, 0))  # as it was: no fingerprint tells
    pass_over_what_is_due(keyed)


def test_a_cell_that_loses_a_row_to_another_is_marked_first(keyed: World) -> None:
    put(keyed, row(1, 0), row(2, 1))
    ended_well(keyed.sync(keyed.cells(0, 1)))
    put(keyed, row(1, 1))
    ended_well(keyed.sync(keyed.cells(1, 1)))
    keyed.source.delete(1)
    ended_well(keyed.sync(keyed.cells(1, 1)))
    put(keyed, row(1, 0))  # back unchanged
    pass_over_what_is_due(keyed)


def test_a_row_that_left_every_window_is_deleted(keyed: World) -> None:
    put(keyed, row(1, 0), row(2, 0), row(3, 0), row(4, 0))
    ended_well(keyed.sync(keyed.cells(0, 0)))
    put(keyed, row(1, -1), row(2, 10_000))
    ended_well(keyed.sync(keyed.cells(0, 0)))
    pass_over_what_is_due(keyed)


def test_the_snapshot_does_not_go_back(keyed: World) -> None:
    put(keyed, row(1, 0))
    keyed.move_clock(50)
    put(keyed, row(1, 0, 2.5))
    ended_well(keyed.sync(keyed.cells(0, 0)))
    keyed.t_behind_s = lambda: 40.0
    back = keyed.sync(keyed.cells(0, 0))
    assert isinstance(back.error, PlanRefused)
    keyed.t_behind_s = lambda: 0.0
    pass_over_what_is_due(keyed)


def test_all_that_a_run_reads_is_of_one_instant(keyed: World) -> None:
    put(keyed, row(1, 0), row(2, 0))
    ended_well(keyed.sync(keyed.cells(0, 0)))
    put(keyed, row(1, 0, 2.5))
    reading = keyed.start(keyed.cells(0, 0))
    keyed.run_until(reading, "after plan")
    put(keyed, row(2, 0, 2.5))
    keyed.finish(reading)
    ended_well(reading)
    pass_over_what_is_due(keyed)


def test_a_fingerprint_is_that_of_the_cells_own_instant(sliced: World) -> None:
    """One slice that was synced later says nothing of the other."""
    put(sliced, *(row(n, 0) for n in range(1, 7)))
    ended_well(sliced.sync(sliced.cells(0, 0)))
    put(sliced, *(row(n, 0, 2.5) for n in range(1, 7)))
    ended_well(sliced.sync(sliced.cells(0, 0)[:1]))
    pass_over_what_is_due(sliced)


def test_a_change_between_the_instant_and_the_plan_is_not_taken_for_synced(keyed: World) -> None:
    put(keyed, row(1, 0))
    slow = keyed.start(keyed.cells(0, 0))
    keyed.run_until(slow, "before record_schema")
    put(keyed, row(1, 0, 2.5))
    keyed.finish(slow)
    ended_well(slow)
    pass_over_what_is_due(keyed)


def opened(world: World) -> None:
    """The third window is open and held so far."""
    put(world, row(1, 2, second=10), row(2, 2, second=20))
    ended_well(world.sync(world.cells(2, 2)))
    world.move_clock(60)


def test_an_open_window_is_topped_up(keyed: World) -> None:
    opened(keyed)
    put(keyed, row(3, 2, second=140))
    topped = keyed.sync(keyed.cells(2, 2))
    ended_well(topped)
    assert [batch.mode for batch in topped.batches] == [Mode.TOPUP]
    pass_over_what_is_due(keyed)


def test_an_open_window_whose_held_part_changed_is_reconciled(keyed: World) -> None:
    opened(keyed)
    put(keyed, row(1, 2, 2.5, second=10), row(3, 2, second=140))
    ended_well(keyed.sync(keyed.cells(2, 2)))
    pass_over_what_is_due(keyed)


def test_a_window_that_closes_is_reconciled(keyed: World) -> None:
    opened(keyed)
    put(keyed, row(1, 2, 2.5, second=10))
    keyed.move_clock(WINDOW.total_seconds())
    ended_well(keyed.sync(keyed.cells(2, 2)))
    pass_over_what_is_due(keyed)


def test_a_row_of_the_last_seconds_is_not_taken_for_held(keyed: World) -> None:
    """It came in time for T, and too late for the part that is read."""
    now = keyed.clock.now
    put(keyed, row(1, 2, second=10), Row(2, now - LAG / 2, 1.0, "a"))
    ended_well(keyed.sync(keyed.cells(2, 2)))
    keyed.move_clock(60)
    ended_well(keyed.sync(keyed.cells(2, 2)))
    pass_over_what_is_due(keyed)


def test_rows_that_only_moved_do_not_alarm_the_guard(keyed: World) -> None:
    put(keyed, *(row(n, 0) for n in (1, 2, 3, 4)))
    ended_well(keyed.sync(keyed.cells(0, 1)))
    put(keyed, *(row(n, 1) for n in (1, 2, 3, 4)))
    ended_well(keyed.sync(keyed.cells(0, 0)))
    pass_over_what_is_due(keyed)


def test_a_great_loss_is_refused_until_it_is_allowed(keyed: World) -> None:
    put(keyed, *(row(n, 0) for n in (1, 2, 3, 4)))
    ended_well(keyed.sync(keyed.cells(0, 0)))
    for n in (1, 2, 3):
        keyed.source.delete(n)
    refused = keyed.sync(keyed.cells(0, 0))
    assert isinstance(refused.error, TurnFailed)
    assert len(keyed.watch.held()) == 4
    pass_over_what_is_due(keyed)


def test_what_a_failed_run_took_out_counts_for_the_guard(keyed: World) -> None:
    put(keyed, row(1, 0), row(2, 0), row(3, 1), row(4, 1))
    ended_well(keyed.sync(keyed.cells(0, 1)))
    keyed.source.delete(1, 2, 3, 4)
    dead = keyed.start(keyed.cells(0, 0))
    keyed.run_until(dead, "before commit_cells")
    keyed.kill(dead)
    keyed.move_clock(TTL_S + 1)
    refused = keyed.sync(keyed.cells(1, 1))
    assert isinstance(refused.error, TurnFailed)
    assert set(keyed.watch.held()) == {3, 4}
    pass_over_what_is_due(keyed)


def test_a_retry_may_delete_what_the_run_before_it_was_about_to(keyed: World) -> None:
    put(keyed, *(row(n, 0) for n in range(1, 9)))
    ended_well(keyed.sync(keyed.cells(0, 0)))
    keyed.source.delete(1, 2, 3)
    for stop in ("after intend_deletes", "after delete"):  # nothing is gone; then all are
        dead = keyed.start(keyed.cells(0, 0))
        keyed.run_until(dead, stop)
        keyed.kill(dead)
        keyed.move_clock(TTL_S + 1)
    ended_well(keyed.sync(keyed.cells(0, 0)))
    pass_over_what_is_due(keyed)


def test_of_two_runs_side_by_side_one_sees_what_the_other_takes_out(sliced: World) -> None:
    mine, others = of_slice(0, 2), of_slice(1, 2)
    put(sliced, *(row(n, 0) for n in (*mine, *others)))
    one, other = sliced.cells(0, 0)
    ended_well(sliced.sync([one, other]))
    sliced.source.delete(*mine, *others)
    slow = sliced.start([one])
    sliced.run_until(slow, "before intend_deletes")
    ended_well(sliced.sync([other]))
    sliced.finish(slow)
    assert isinstance(slow.error, TurnFailed)
    assert set(sliced.watch.held()) == set(mine)
    pass_over_what_is_due(sliced)


def test_what_was_refused_counts_for_nobody_from_then_on(sliced: World) -> None:
    (stays, *mine), others = of_slice(0, 5), of_slice(1, 2)
    put(sliced, row(stays, 1), *(row(n, 0) for n in (*mine, *others)))
    ended_well(sliced.sync(sliced.cells(0, 1)))
    put(sliced, row(stays, 1, 2.5))
    sliced.source.delete(*mine, *others)
    slow = sliced.start([cell for cell in sliced.cells(0, 1) if cell.slice == 0])
    sliced.run_until(slow, "after upsert")  # to what it writes in the other window
    ended_well(sliced.sync([cell for cell in sliced.cells(0, 0) if cell.slice == 1]))
    sliced.finish(slow)
    assert isinstance(slow.error, TurnFailed)
    assert set(sliced.watch.held()) == {stays, *mine}
    pass_over_what_is_due(sliced)


def test_equal_rows_get_their_numbers_over_all_streams(keyless: World) -> None:
    put(keyless, *(row(n, 0) for n in (1, 2, 3, 4)), row(5, 0, 2.5))
    ended_well(keyless.sync(keyless.cells(0, 0)))
    put(keyless, row(6, 0), row(7, 0, 2.5))
    keyless.source.delete(1)
    ended_well(keyless.sync(keyless.cells(0, 0)))
    pass_over_what_is_due(keyless)


def test_equal_rows_are_all_in_one_slice(keyless_sliced: World) -> None:
    # Of several contents, so that some belong into the slice that is synced first.
    put(keyless_sliced, *(row(n, 0, second=7.0 + n % 4) for n in range(1, 25)))
    for cell in keyless_sliced.cells(0, 0):
        ended_well(keyless_sliced.sync([cell]))
    pass_over_what_is_due(keyless_sliced)


def test_a_row_that_is_gone_is_kept_where_that_is_asked_for(keeping: World) -> None:
    put(keeping, *(row(n, 0) for n in (1, 2, 3)))
    ended_well(keeping.sync(keeping.cells(0, 0)))
    keeping.source.delete(1, 2, 3)
    ended_well(keeping.sync(keeping.cells(0, 0)))
    put(keeping, row(1, 1))  # the last pass finds it in another window
    pass_over_what_is_due(keeping)
    assert set(keeping.watch.held()) == {1, 2, 3}


def test_a_row_that_returns_loses_its_flag(flagging: World) -> None:
    put(flagging, *(row(n, 0) for n in (1, 2, 3, 4)))
    ended_well(flagging.sync(flagging.cells(0, 0)))
    flagging.source.delete(1, 2)
    ended_well(flagging.sync(flagging.cells(0, 0)))
    put(flagging, row(1, 0))  # as it was
    ended_well(flagging.sync(flagging.cells(0, 0)))
    put(flagging, row(2, 1))
    pass_over_what_is_due(flagging)


def test_a_row_that_became_good_leaves_quarantine(keyed: World) -> None:
    put(keyed, row(1, 0, BAD), row(2, 0))
    ended_well(keyed.sync(keyed.cells(0, 0)))
    put(keyed, row(1, 0))
    ended_well(keyed.sync(keyed.cells(0, 0)))
    pass_over_what_is_due(keyed)


def test_no_old_version_of_a_row_in_quarantine_stays(keyed: World) -> None:
    put(keyed, row(1, 0), row(2, 0))
    ended_well(keyed.sync(keyed.cells(0, 0)))
    put(keyed, row(1, 0, BAD))
    ended_well(keyed.sync(keyed.cells(0, 0)))
    pass_over_what_is_due(keyed)


def test_wherever_a_run_is_killed_the_next_one_puts_everything_right(keyed: World) -> None:
    """Each moves a row and writes; a loss is refused, or allowed, or no request is answered."""
    keyed.move_clock(WINDOW.total_seconds())
    put(keyed, row(1, 0), row(2, 0))
    ways = [(stop, way) for stop in STOPS for way in ("refused", "allowed", "lost")]
    for number, (stop, way) in enumerate(ways):
        if keyed.counts[killed_at(stop)]:
            continue
        many = [row(10 + 3 * number + n, 2) for n in range(3)]
        keyed.source.insert(*many)
        ended_well(keyed.sync(keyed.cells(0, 2), allow_deletes=True))
        there = keyed.source.rows[1].ts
        put(keyed, row(1, 1 if there and there < START + WINDOW else 0), row(2, 0, number))
        keyed.source.delete(*(each.n for each in many))
        fates(keyed, *(["lost"] * 3 if way == "lost" else []))
        keyed.kill_at = {stop}
        cells = [*keyed.cells(0, 0), *keyed.cells(2, 2)]
        killed = keyed.start(cells, allow_deletes=way == "allowed")
        while not killed.is_over:
            keyed.move_clock(3)  # so that leases are renewed on the way
            if not killed.is_over:
                keyed.step(killed)
        keyed.kill_at = set()
        fates(keyed)
        keyed.move_clock(TTL_S + 1)
    assert not [stop for stop in STOPS if not keyed.counts[killed_at(stop)]]
    pass_over_what_is_due(keyed)
