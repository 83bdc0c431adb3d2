"""Rules of a transactional target taken out: its guard, its order, its leases, its moved rows."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, update

from bq_harper_assets.ledger.ledger import Ledger, writing_method
from bq_harper_assets.ledger.records import BatchState
from bq_harper_assets.ledger.store.tables import BATCHES
from bq_harper_assets.ledger.verbs import cell_commits
from bq_harper_assets.sync.turn import turn, turn_transaction
from bq_harper_assets.sync.turn.turn_transaction import TurnTransaction

Patch = pytest.MonkeyPatch


def unguarded(patch: Patch) -> None:
    take = TurnTransaction.take

    def whatever_was_taken(self: TurnTransaction, *args: Any) -> None:
        take(replace(self, before=self.transaction.applied()), *args)

    patch.setattr(TurnTransaction, "take", whatever_was_taken)


def ledger_before_the_target(patch: Patch) -> None:
    take, commit = TurnTransaction.take, Ledger.commit_cells
    waiting: list[Callable[[], None]] = []

    def later(self: TurnTransaction, *args: Any) -> None:
        waiting.append(lambda: take(self, *args))

    def first(self: Ledger, *args: Any, **allowed: bool) -> None:
        commit(self, *args, **allowed)
        if waiting:
            waiting.pop()()

    patch.setattr(TurnTransaction, "take", later)
    patch.setattr(Ledger, "commit_cells", first)


def recognised_twice(patch: Patch) -> None:
    recognise = cell_commits.recognise

    def again(connection: Connection, leases: Any, applied: Sequence[Any]) -> Any:
        these = BATCHES.c.seq.in_([each.seq for each in applied])
        mine = BATCHES.c.route_id == leases.route.id
        connection.execute(update(BATCHES).where(mine, these).values(state=BatchState.PLANNED))
        return recognise(connection, leases, applied)

    patch.setattr(Ledger, "recognise", writing_method(again))


def any_ledger(patch: Patch) -> None:
    patch.setattr(turn_transaction, "_require_this_ledger", lambda *args: None)


def recognised_by_number(patch: Patch) -> None:
    patch.setattr(cell_commits, "_is_planned_so", lambda batch, row: row is not None)


def given_back_before_the_answer(patch: Patch) -> None:
    take = TurnTransaction.take

    def hasty(self: TurnTransaction, *args: Any) -> None:
        *_, give_back = args
        give_back()
        take(self, *args)

    patch.setattr(TurnTransaction, "take", hasty)


def moved_rows_apart(patch: Patch) -> None:
    patch.setattr(turn, "with_moved_rows_together", lambda works, outcomes: outcomes)


def target_may_be_ahead(patch: Patch) -> None:
    patch.setattr(TurnTransaction, "require_not_ahead", lambda self, position: None)
