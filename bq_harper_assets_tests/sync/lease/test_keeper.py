"""Who may send, and until when: the owner's deadline, its mirror, and what ends a lease."""

import re
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from socket import gethostname

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.ledger.errors import LeaseHeld
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.questions.mirrored_facts import Mirrored
from bq_harper_assets.ledger.records import LedgerRoute, RouteFacts
from bq_harper_assets.retries.breaker import Breakers
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.retries.waiting import WAITS
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.errors import HarperUnavailable
from bq_harper_assets.stores.harper.lease.ledger_agreement import copies_of, require_in_step
from bq_harper_assets.stores.harper.lease.send_deadline import Deadline, mirror_id
from bq_harper_assets.stores.harper.mirror.tables import MIRRORED_LEASES
from bq_harper_assets.sync.errors import LeaseRanOut, OutOfStep
from bq_harper_assets.sync.lease.keeper import (
    ASK_EVERY_S,
    LeaseTimes,
    lease_times,
)
from bq_harper_assets.sync.revisit.open_window import PAUSE
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy, NoAnswer
from bq_harper_assets_tests.sync.lease.harper_keeper import harper_keeper

pytestmark = pytest.mark.harper
TTL = timedelta(seconds=60)
TIMES = LeaseTimes(TTL, timedelta(seconds=10))
SHORT = LeaseTimes(timedelta(seconds=1.2), timedelta(seconds=0.2))
NOW = 1_000_000.0


class Clock:
    """Stands still until a test moves it."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class SteppedWall:
    """The wall clock of a machine that somebody sets while a run is at work."""

    def __init__(self) -> None:
        self.by = 0.0

    def __call__(self) -> float:
        return time.time() + self.by


@pytest.fixture
def harper(harper_connection: HarperConnection) -> Iterator[HarperClient]:
    with HarperClient(harper_connection) as client:
        yield client


@pytest.fixture
def table(ledger: Ledger) -> LedgerRoute:
    return _registered(ledger, f"K{uuid.uuid4().hex[:12]}")


def _registered(ledger: Ledger, target: str) -> LedgerRoute:
    hour = timedelta(hours=1)
    return ledger.register_route(
        RouteFacts(
            name=target.lower(),
            table=target.lower(),
            source="s",
            target=target,
            timestamp_column="ts",
            key=(),
            window=hour,
            slices=2,
        )
    )


def _mirrored(harper: HarperClient, table: LedgerRoute) -> dict[int, tuple[int, float]]:
    """Epoch and deadline by slice."""
    ids = [mirror_id(table.facts.target, part) for part in range(2)]
    rows = harper.search_by_id(MIRRORED_LEASES.name, ids)
    return {ids.index(row["id"]): (row["epoch"], row["deadline"]) for row in rows}


def test_the_owners_deadline_counts_from_when_it_asked(
    harper: HarperClient, tmp_path: Path
) -> None:
    """The answer took 5 s: by then 5 of the 60 are gone, and nobody may believe otherwise."""
    asked = iter([100.0])
    with open_ledger(f"sqlite:///{tmp_path / 'own.db'}", monotonic=lambda: next(asked)) as ledger:
        table = _registered(ledger, f"K{uuid.uuid4().hex[:12]}")
        keeper = harper_keeper(
            ledger, harper, table, [0], "me", TIMES, wall=Clock(NOW), monotonic=Clock(105.0)
        )
        with keeper:
            assert keeper.terms.deadline == NOW + 55
            assert _mirrored(harper, table) == {0: (1, NOW + 55)}


def is_held(ledger: Ledger, harper: HarperClient, table: LedgerRoute) -> bool:
    """Whether another run is refused."""
    try:
        with harper_keeper(ledger, harper, table, [0], "another run", TIMES):
            return False
    except LeaseHeld:
        return True


@pytest.mark.parametrize("hours", [(1, 0), (-1, 0), (1, -1), (-1, 1)])
def test_a_run_whose_wall_clock_is_set_by_an_hour_goes_on_or_says_so_and_holds_its_lease_alone(
    ledger: Ledger, harper: HarperClient, table: LedgerRoute, hours: tuple[int, int]
) -> None:
    wall, times = SteppedWall(), LeaseTimes(timedelta(seconds=6), timedelta(seconds=0.5))
    with harper_keeper(ledger, harper, table, [0, 1], "me", times, wall=wall) as keeper:
        ask = Deadline(keeper.terms, harper, wall)
        ask()
        for hour in hours:
            wall.by = hour * 3600.0
            give_up = time.monotonic() + 60
            while True:  # until a renewal was mirrored by the new time
                assert is_held(ledger, harper, table)
                try:
                    ask()
                    break
                except LeaseRanOut:
                    assert time.monotonic() < give_up
                    time.sleep(0.1)
        assert keeper.terms.epochs == {0: 1, 1: 1}  # never lost and taken again


def test_leases_are_renewed_and_mirrored_while_the_block_runs(
    ledger: Ledger, harper: HarperClient, table: LedgerRoute
) -> None:
    with harper_keeper(ledger, harper, table, [0, 1], "me", SHORT) as keeper:
        first = keeper.terms.deadline
        time.sleep(SHORT.ttl.total_seconds() * 1.5)
        assert all(lease.is_live for lease in ledger.leases(table))
        epoch, deadline = _mirrored(harper, table)[1]
        assert epoch == keeper.terms.epochs[1]
        assert deadline > first + SHORT.ttl.total_seconds()
    assert not any(lease.is_live for lease in ledger.leases(table))


def test_a_lease_left_to_expire_is_nobodys_before_that(
    ledger: Ledger, harper: HarperClient, table: LedgerRoute
) -> None:
    with harper_keeper(ledger, harper, table, [0, 1], "the first", SHORT) as keeper:
        keeper.leave_to_expire()
    with (
        pytest.raises(LeaseHeld, match="slice 0: the first until"),
        harper_keeper(ledger, harper, table, [0], "the second", SHORT),
    ):
        pass
    time.sleep(SHORT.ttl.total_seconds())
    with harper_keeper(ledger, harper, table, [0], "the second", SHORT) as keeper:
        assert keeper.terms.epochs == {0: 2}


def test_a_run_with_patience_waits_for_the_lease_that_another_one_gives_back(
    ledger: Ledger, harper: HarperClient, table: LedgerRoute
) -> None:
    said: list[str] = []
    patient = replace(TIMES, patience=timedelta(seconds=20))
    first = harper_keeper(ledger, harper, table, [0, 1], "a live run", TIMES)
    first.__enter__()
    back = threading.Timer(1.5, first.__exit__, (None, None, None))
    back.start()
    with (
        WAITS.listen(said.append),
        harper_keeper(ledger, harper, table, [0], "a backfill", patient) as keeper,
    ):
        assert keeper.terms.epochs == {0: 2}
    back.join()
    [line] = [each for each in said if table.name in each]  # once, however often it asks
    begins = f"waits for the lease of {table.name}, held by run a live run on {gethostname()}, "
    assert line.startswith(begins)
    assert re.search(r", since .* UTC; asks every 1 s, gives up at [\d:]{8} UTC$", line)


def test_a_run_that_waits_for_its_own_lease_does_not_blame_someone_else(
    ledger: Ledger, harper: HarperClient, table: LedgerRoute
) -> None:
    said: list[str] = []
    patient = replace(SHORT, patience=timedelta(seconds=60))
    with harper_keeper(ledger, harper, table, [0, 1], "9f56", SHORT) as first:
        first.leave_to_expire()
    with (
        pytest.raises(LeaseHeld, match=r"is still held by an earlier try of this run: slice 0"),
        harper_keeper(ledger, harper, table, [0, 1], "9f56", SHORT),
    ):
        pass
    with (
        WAITS.listen(said.append),
        harper_keeper(ledger, harper, table, [0, 1], "9f56", patient) as second,
    ):
        assert second.terms.epochs == {0: 2, 1: 2}
    [line] = [each for each in said if table.name in each]
    assert f"the lease of {table.name}, held by an earlier try of this run on" in line


def test_a_lease_is_renewed_while_harper_is_too_busy_to_hear_of_it(
    ledger: Ledger, harper: HarperClient, harper_connection: HarperConnection, table: LedgerRoute
) -> None:
    """Renewing waits for nobody: a storm at Harper must not cost the lease in the ledger."""
    with FaultProxy(harper_connection.url) as proxy:
        busy = harper_connection.model_copy(update={"url": proxy.url})
        with (
            HarperClient(busy, retry=RetryPolicy(max_retries=0), breakers=Breakers()) as mirror,
            harper_keeper(ledger, harper, table, [0, 1], "me", SHORT, hurried=mirror) as keeper,
        ):
            proxy.on(Answer(429, headers={"Retry-After": "30"}), operation="upsert", times=99)
            first = keeper.leases
            time.sleep(SHORT.ttl.total_seconds() * 1.5)
            assert all(lease.is_live for lease in ledger.leases(table))
            assert keeper.leases.deadline > first.deadline
            proxy.heal()


def test_patience_ends(ledger: Ledger, harper: HarperClient, table: LedgerRoute) -> None:
    short = replace(TIMES, patience=timedelta(seconds=1.5))
    with harper_keeper(ledger, harper, table, [0], "a live run", TIMES):
        began = time.monotonic()
        with (
            pytest.raises(LeaseHeld, match="slice 0: a live run until"),
            harper_keeper(ledger, harper, table, [0], "a backfill", short),
        ):
            pass
        assert 1.5 <= time.monotonic() - began < 30


def test_a_live_run_pauses_for_longer_than_a_waiting_run_takes_to_ask_again() -> None:
    assert timedelta(seconds=ASK_EVERY_S) < PAUSE


def test_an_error_before_anything_was_sent_gives_the_lease_back(
    ledger: Ledger, harper: HarperClient, table: LedgerRoute
) -> None:
    with (
        pytest.raises(ValueError, match="before"),
        harper_keeper(ledger, harper, table, [0, 1], "me", TIMES),
    ):
        raise ValueError("before any task began")
    assert [lease.owner for lease in ledger.leases(table)] == [None, None]


def test_a_lease_that_cannot_be_mirrored_is_given_back(
    ledger: Ledger, harper_connection: HarperConnection, table: LedgerRoute
) -> None:
    with FaultProxy(harper_connection.url) as proxy:
        proxy.on(Answer(503), operation="upsert", table=MIRRORED_LEASES.name, times=9)
        spoilt = harper_connection.model_copy(update={"url": proxy.url})
        with (
            HarperClient(spoilt, retry=RetryPolicy(max_retries=0)) as harper,
            pytest.raises(HarperUnavailable),
            harper_keeper(ledger, harper, table, [0], "me", TIMES),
        ):
            pass
    assert ledger.leases(table)[0].owner is None


def test_a_target_of_another_ledger_is_refused_whatever_the_slice(
    ledger: Ledger, harper: HarperClient, table: LedgerRoute, tmp_path: Path
) -> None:
    with harper_keeper(ledger, harper, table, [1], "me", TIMES):
        pass
    with open_ledger(f"sqlite:///{tmp_path / 'other.db'}") as other:
        same = _registered(other, table.facts.target)
        with pytest.raises(OutOfStep, match=str(ledger.identity())):
            require_in_step(other, harper, same, adopted=False)


def test_a_run_that_ends_well_leaves_the_newest_batch_and_no_deadline_to_wait_for(
    ledger: Ledger, harper: HarperClient, table: LedgerRoute
) -> None:
    with harper_keeper(ledger, harper, table, [1], "me", TIMES):
        assert [copy.deadline > time.time() for copy in copies_of(harper, table)] == [True]
        assert ledger.mirrored(table) == ()
    [copy] = copies_of(harper, table)
    assert (copy.slice, copy.epoch, copy.batch) == (1, 1, 0)
    assert copy.deadline <= time.time()
    assert ledger.mirrored(table) == (Mirrored(1, 1, 0),)
    with pytest.raises(ZeroDivisionError), harper_keeper(ledger, harper, table, [1], "me", TIMES):
        raise ZeroDivisionError  # perhaps Harper is away: it is not asked again
    assert ledger.mirrored(table) == (Mirrored(1, 1, 0),)
    require_in_step(ledger, harper, table, adopted=False)


def test_a_run_leaves_the_newest_batch_before_its_first_write(
    ledger: Ledger, harper: HarperClient, table: LedgerRoute
) -> None:
    with harper_keeper(ledger, harper, table, [1], "me", TIMES) as keeper:
        keeper.note_planned()
        [copy] = copies_of(harper, table)
        assert (copy.slice, copy.epoch, copy.batch) == (1, 1, 0)
        assert copy.deadline > time.time()  # that of the renewals stays
        assert ledger.mirrored(table) == (Mirrored(1, 1, 0),)
    assert ledger.leases(table)[1].owner is None


def test_a_copy_that_may_still_take_effect_keeps_the_lease_until_it_expires(
    ledger: Ledger, harper_connection: HarperConnection, table: LedgerRoute
) -> None:
    """Over the next owner's copy it would look like a Harper that was restored from a backup."""
    with FaultProxy(harper_connection.url) as proxy:
        through = harper_connection.model_copy(update={"url": proxy.url})
        with (
            HarperClient(
                through, retry=RetryPolicy(max_retries=2, initial_delay_s=0.01), breakers=Breakers()
            ) as harper,
            harper_keeper(ledger, harper, table, [1], "me", TIMES) as keeper,
        ):
            proxy.on(NoAnswer(), operation="upsert", table=MIRRORED_LEASES.name, times=1)
            keeper.note_planned()  # the second try is answered, and does not recall the first
            assert ledger.mirrored(table) == (Mirrored(1, 1, 0),)
            keeper.give_back()
    assert ledger.leases(table)[1].is_live


def test_a_run_that_stood_still_past_its_lease_leaves_no_batch_in_harper(
    ledger: Ledger, harper: HarperClient, table: LedgerRoute
) -> None:
    now = Clock(time.monotonic())
    with harper_keeper(ledger, harper, table, [1], "me", TIMES, monotonic=now) as keeper:
        now.now = keeper.leases.deadline + 10 * TTL.total_seconds()  # whatever is renewed meanwhile
        with pytest.raises(LeaseRanOut, match=f"Next: bqh sync {table.name}"):
            keeper.note_planned()
    assert [copy.batch for copy in copies_of(harper, table)] == [None]  # nor at its end
    assert ledger.mirrored(table) == ()


def test_clocks_of_a_cluster_are_not_trusted_to_the_second() -> None:
    assert lease_times("local[*,4]").max_clock_skew == timedelta(0)
    assert lease_times("yarn").max_clock_skew == timedelta(seconds=2)
    assert lease_times("").max_clock_skew == timedelta(seconds=2)
