"""Positions are ranked; sets of transactions have an order that is not known beforehand."""

from dataclasses import dataclass, replace

import pytest

from bq_harper_assets.ledger.errors import PlanRefused, PositionsNotComparable
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.position import InstantPosition, PositionOrder
from bq_harper_assets.ledger.records import Batch, Leases, LedgerRoute, Mark
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


@dataclass(frozen=True)
class Transactions:
    """A made-up position: the transactions that a store has taken, each named by a letter."""

    names: str
    kind: str = "transactions"
    rank: None = None

    @property
    def text(self) -> str:
        return ",".join(self.names)

    def compared_with(self, text: str) -> PositionOrder:
        mine, other = set(self.names), set(filter(None, text.split(",")))
        if mine == other:
            return PositionOrder.EQUAL
        if mine > other:
            return PositionOrder.AFTER
        return PositionOrder.BEFORE if mine < other else PositionOrder.NOT_COMPARABLE


@pytest.fixture
def leases(ledger: Ledger, table: LedgerRoute) -> Leases:
    return ledger.acquire(table, [0, 1], "ann", TTL)


def _sync(ledger: Ledger, leases: Leases, names: str, hour: int = 0, slice: int = 0) -> Batch:
    """One cell, at the position of these transactions."""
    wanted = [copy(cell(hour, slice))]
    (batch,) = ledger.plan(leases, T, 1, wanted, "run", Transactions(names))
    commit_cell(ledger, leases, batch, result())
    return batch


def test_a_batch_keeps_its_position_and_its_rank(
    ledger: Ledger, table: LedgerRoute, leases: Leases
) -> None:
    _sync(ledger, leases, "ab")
    kept = ledger.history(table)[0]
    assert (kept.position_kind, kept.position, kept.rank) == ("transactions", "a,b", 1)
    assert kept.t == T


def test_an_instant_is_ranked_by_its_microseconds(
    ledger: Ledger, table: LedgerRoute, leases: Leases
) -> None:
    (batch,) = ledger.plan(leases, T, 1, [copy(cell())], "run")
    kept = ledger.history(table)[0]
    assert (kept.position_kind, kept.position) == ("instant", "2026-11-17T00:00:00.000000Z")
    assert batch.rank == kept.rank == InstantPosition(T).rank


def test_ranks_follow_the_order_of_positions(ledger: Ledger, leases: Leases) -> None:
    assert _sync(ledger, leases, "a").rank == 1
    assert _sync(ledger, leases, "ab").rank == 2
    assert _sync(ledger, leases, "ba", hour=1, slice=1).rank == 2  # equal, whatever its text
    with pytest.raises(PlanRefused, match="at the later position a,b, not a "):
        _sync(ledger, leases, "a", hour=2)
    assert _sync(ledger, leases, "abcd", slice=1).rank == 3


def test_a_position_before_the_newest_is_refused_in_every_slice(
    ledger: Ledger, leases: Leases
) -> None:
    _sync(ledger, leases, "abc")
    for slice in (0, 1):
        with pytest.raises(PlanRefused, match="at the later position a,b,c, not a,b "):
            _sync(ledger, leases, "ab", hour=1, slice=slice)


def test_positions_that_are_not_comparable_stop_the_plan(
    ledger: Ledger, table: LedgerRoute, leases: Leases
) -> None:
    _sync(ledger, leases, "ab")
    with pytest.raises(PositionsNotComparable) as stopped:
        _sync(ledger, leases, "ac", hour=1)
    for part in ("positions", "a,b (transactions)", "a,c (transactions)", "bqh reconcile"):
        assert part in str(stopped.value)
    with pytest.raises(PositionsNotComparable):  # of another kind: the source is another store
        ledger.plan(leases, T, 1, [copy(cell(1))], "run")
    assert [one.position for one in ledger.history(table)] == ["a,b"]
    assert _sync(ledger, leases, "abc", hour=1).rank == 2


def test_a_turn_goes_on_at_its_position_though_another_has_gone_further_on_other_slices(
    ledger: Ledger, leases: Leases, table: LedgerRoute
) -> None:
    _sync(ledger, leases, "a")
    _sync(ledger, leases, "ab", slice=1)
    assert _sync(ledger, leases, "a", hour=1).rank == 1
    mark = Mark(cell(1), START + HOUR, "a row moved here")
    assert ledger.mark(leases, Transactions("a"), [mark], unless_committed_there=True) == ()


def test_a_mark_is_settled_by_a_commit_at_its_position_or_after_it(
    ledger: Ledger, table: LedgerRoute, leases: Leases
) -> None:
    def marks() -> int:
        return ledger.cells(table, START, START + HOUR)[0].marks

    _sync(ledger, leases, "a")
    # As of a position that was never planned: what moved was seen after the turn began.
    mark = Mark(cell(), START, "a row moved here")
    assert ledger.mark(leases, Transactions("ab"), [mark]) == (cell(),)
    _sync(ledger, leases, "a")
    assert marks() == 1
    assert ledger.mark(leases, Transactions("ab"), [mark], unless_committed_there=True) != ()
    _sync(ledger, leases, "ab")
    assert marks() == 0
    assert ledger.mark(leases, Transactions("ab"), [mark], unless_committed_there=True) == ()


def test_after_every_cell_is_to_be_compared_any_position_is_the_next(
    ledger: Ledger, table: LedgerRoute, leases: Leases
) -> None:
    other = ledger.register_route(replace(FACTS, name="calls", table="calls", target="Calls"))
    ledger.record_schema(other, {"columns": ["ts"]}, 0)
    theirs = ledger.acquire(other, [0, 1], "eve", TTL)
    for held in (leases, theirs):
        _sync(ledger, held, "ab")
    _sync(ledger, theirs, "abc", slice=1)
    ledger.release(leases)
    ledger.distrust(table, [], epoch=0, batch=0)
    again = ledger.acquire(table, [0, 1], "bob", TTL)
    assert _sync(ledger, again, "ab").rank == 2  # compared anew, so that no mark is settled by it
    with pytest.raises(PositionsNotComparable):
        _sync(ledger, again, "x", hour=1)
    assert _sync(ledger, theirs, "ab", hour=1).rank == 1


def test_after_every_cell_is_to_be_compared_a_position_that_was_not_comparable_is_the_next(
    ledger: Ledger, table: LedgerRoute, leases: Leases
) -> None:
    _sync(ledger, leases, "ab")
    ledger.release(leases)
    ledger.distrust(table, [], epoch=0, batch=0)
    again = ledger.acquire(table, [0, 1], "bob", TTL)
    assert _sync(ledger, again, "x").rank == 2
    with pytest.raises(PositionsNotComparable):
        _sync(ledger, again, "ab", hour=1)


def test_a_new_number_of_slices_keeps_the_position(
    ledger: Ledger, table: LedgerRoute, leases: Leases
) -> None:
    _sync(ledger, leases, "ab")
    ledger.release(leases)
    fewer = ledger.change_slices(table, 2)
    again = ledger.acquire(fewer, [0, 1], "bob", TTL)
    with pytest.raises(PlanRefused):
        _sync(ledger, again, "a", slice=1)
    assert _sync(ledger, again, "abc").rank == 2
