"""A transactional target takes a turn at once, under a guard, before the ledger records it.

So it may be ahead of the ledger: a run may have died between the two. Before anything is staged,
what the target has taken is recognised in the ledger, or the turn stops.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bq_harper_assets.ledger.errors import UnknownBatches
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.position import Position, PositionOrder
from bq_harper_assets.ledger.records import AppliedBatch, Batch, CellResult, LedgerRoute
from bq_harper_assets.sync.errors import OutOfStep, TargetAhead, TargetMoved
from bq_harper_assets.sync.lease.keeper import Keeper
from bq_harper_assets.sync.protocols import AppliedTurn, Target, Transaction


@dataclass(frozen=True, kw_only=True)
class TurnTransaction:
    """A turn's transaction begins under the lease, and knows what the target had taken by then."""

    table: LedgerRoute
    ledger: str  # its identity
    transaction: Transaction
    before: AppliedTurn | None

    def require_not_ahead(self, position: Position) -> None:
        """Raises TargetAhead unless the source is where the target was brought to, or after it."""
        held = self.before
        if held is None:
            return
        order = PositionOrder.NOT_COMPARABLE
        if position.kind == held.position_kind:
            order = position.compared_with(held.position)
        if order in (PositionOrder.BEFORE, PositionOrder.NOT_COMPARABLE):
            there, here = f"{held.position} ({held.position_kind})", _told(position)
            raise TargetAhead(self.table, there, here, is_known=order is PositionOrder.BEFORE)

    def take(
        self,
        position: Position,
        run_id: str,
        done: Sequence[tuple[Batch, CellResult]],
        staged: Mapping[int, int],
        give_back: Callable[[], None],
    ) -> None:
        """Lets the target take these batches, if it has taken nothing else meanwhile.

        `staged` counts the rows that the tasks have staged for each batch, by their receipts. The
        leases are given back once it is known whether the target has taken the batches. After any
        other error it may still take them, so that nobody else may begin before the leases expire.
        """
        turn = AppliedTurn(
            ledger=self.ledger,
            position_kind=position.kind,
            position=position.text,
            batches=tuple(AppliedBatch.of(batch, run_id, result) for batch, result in done),
        )
        try:
            if done:
                self.transaction.apply(turn, self.before, staged)
        except TargetMoved:
            give_back()
            raise
        give_back()


def begin_transaction(
    ledger: Ledger, table: LedgerRoute, target: Target, keeper: Keeper, say: Callable[[str], None]
) -> TurnTransaction | None:
    """Recognises what a transactional target has taken, and clears what others have staged.

    The leases of all slices must be held. Returns None for a target that takes rows one by one.
    """
    transaction = target.transaction()
    if transaction is None:
        return None
    own, before = str(ledger.identity()), transaction.applied()
    if before is not None:
        _require_this_ledger(table, own, before)
        try:
            done = ledger.recognise(keeper.leases, before.batches)
        except UnknownBatches as error:
            raise OutOfStep(table, str(error)) from error
        if done:
            say(
                f"{table.name}: {len(done)} cells that an earlier run had written and not recorded"
                " are committed now"
            )
    _require_not_older(table, ledger.newest_commit(table), before)
    transaction.clear(keeper.terms)
    return TurnTransaction(table=table, ledger=own, transaction=transaction, before=before)


def _require_this_ledger(table: LedgerRoute, own: str, before: AppliedTurn) -> None:
    if before.ledger != own:
        raise OutOfStep(
            table,
            f"the target's table {table.facts.target} is kept by the ledger {before.ledger}, and"
            f" this is the ledger {own}",
            "If that ledger is still there, point ledger.url to it. ",
        )


def _require_not_older(table: LedgerRoute, committed: int, before: AppliedTurn | None) -> None:
    """Raises OutOfStep if the ledger has commits that the target has not taken."""
    # Batches are numbered in the order in which the turns of a route take their leases.
    newest = max((each.seq for each in before.batches), default=committed) if before else 0
    if newest < committed:
        raise OutOfStep(
            table,
            f"the target's table {table.facts.target} is older than the ledger, as if it was"
            f" restored from a backup: its newest batch is {newest}, and the ledger has committed"
            f" batch {committed}",
        )


def _told(position: Position) -> str:
    return f"{position.text} ({position.kind})"
