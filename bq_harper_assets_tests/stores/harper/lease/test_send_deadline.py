"""Until when a task may send: by the deadline of its own epoch, whatever its clock says."""

import time

import pytest

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.lease.send_deadline import Deadline, mirror_id
from bq_harper_assets.stores.harper.mirror.tables import MIRRORED_LEASES
from bq_harper_assets.sync.errors import LeaseRanOut
from bq_harper_assets.sync.protocols import LeaseTerms
from bq_harper_assets_tests.sync.lease.harper_keeper import harper_keeper
from bq_harper_assets_tests.sync.lease.test_keeper import (
    NOW,
    SHORT,
    TIMES,
    Clock,
    SteppedWall,
    harper,
    is_held,
    table,
)

__all__ = ["harper", "table"]
pytestmark = pytest.mark.harper


def test_a_task_sends_only_while_the_effect_falls_before_the_deadline(
    ledger: Ledger, harper: HarperClient, table: LedgerRoute
) -> None:
    clock = Clock(NOW)
    still = Clock(time.monotonic())
    keeper = harper_keeper(ledger, harper, table, [0, 1], "me", TIMES, wall=clock, monotonic=still)
    with keeper:
        deadline = keeper.terms.deadline
        terms = LeaseTerms(
            target=table.facts.target,
            epochs=keeper.terms.epochs,
            deadline=deadline,
            effect_within_s=10,
            max_clock_skew_s=2,
        )
        ask = Deadline(terms, harper, clock)
        clock.now = deadline - 12.001
        ask()
        clock.now = deadline - 12
        with pytest.raises(LeaseRanOut, match=f"the lease of {table.facts.target} could not"):
            ask()


@pytest.mark.parametrize("lost", ["another epoch", "no row"])
def test_a_later_deadline_counts_only_for_all_of_ones_own_epochs(
    harper: HarperClient, ledger: Ledger, table: LedgerRoute, lost: str
) -> None:
    clock = Clock(NOW)
    target = table.facts.target
    with harper_keeper(ledger, harper, table, [0, 1], "me", TIMES):
        pass  # makes the mirror
    rows = [
        {"id": mirror_id(target, part), "epoch": 7 + part, "deadline": NOW + 100 + part}
        for part in range(2)
    ]
    harper.upsert(MIRRORED_LEASES.name, rows)
    ask = Deadline(
        LeaseTerms(
            target=target, epochs={0: 7, 1: 8}, deadline=NOW, effect_within_s=10, max_clock_skew_s=0
        ),
        harper,
        clock,
    )
    ask()
    clock.now = NOW + 89.9  # the earlier of the two decides
    ask()
    clock.now = NOW + 90
    with pytest.raises(LeaseRanOut):
        ask()
    for row in rows:
        row["deadline"] = NOW + 500
    if lost == "no row":
        harper.delete(MIRRORED_LEASES.name, [rows[1]["id"]])
        harper.upsert(MIRRORED_LEASES.name, rows[:1])
    else:
        harper.upsert(MIRRORED_LEASES.name, [rows[0], rows[1] | {"epoch": 9}])
    with pytest.raises(LeaseRanOut):
        ask()
    harper.upsert(MIRRORED_LEASES.name, rows)
    ask()


@pytest.mark.parametrize("hours", [1, -1])
def test_a_task_whose_driver_is_gone_stops_in_time_however_the_wall_clock_is_set(
    ledger: Ledger, harper: HarperClient, table: LedgerRoute, hours: int
) -> None:
    """The ledger's clock may be another machine's: an hour there and here are not the same."""
    wall = SteppedWall()
    with harper_keeper(ledger, harper, table, [0, 1], "the first", SHORT, wall=wall) as keeper:
        ask = Deadline(keeper.terms, harper, wall)
        keeper.leave_to_expire()
    wall.by = hours * 3600.0
    while is_held(ledger, harper, table):
        time.sleep(0.05)
    with pytest.raises(LeaseRanOut, match="Rows written so far are safe"):
        ask()
