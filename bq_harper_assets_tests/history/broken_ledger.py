"""Rules of the ledger taken out or bent: leases, deadlines, plans and commits."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, update

from bq_harper_assets.ledger.ledger import Ledger, writing_method
from bq_harper_assets.ledger.records import CellResult, Mode
from bq_harper_assets.ledger.store.tables import CELLS
from bq_harper_assets.ledger.verbs import batch_plans, cell_commits, quarantine, slice_leases
from bq_harper_assets.stores.harper.lease.send_deadline import Deadline
from bq_harper_assets.sync.lease.keeper import Keeper
from bq_harper_assets.sync.turn.turn import Turn

Patch = pytest.MonkeyPatch
LONGEST_CLIENT_WAIT_S = 4.0


def without_lease_check(step: str) -> Callable[[Patch], None]:
    def apply(patch: Patch) -> None:
        checked = slice_leases.lock_live

        def lock_live(connection: Any, leases: Any, slices: Any, doing: str) -> Any:
            if doing == step:
                return slice_leases.lock(connection, leases.route, slices)
            return checked(connection, leases, slices, doing)

        patch.setattr(slice_leases, "lock_live", lock_live)

    return apply


def commit_before_data(patch: Patch) -> None:
    write = Turn._write

    def hasty(self: Turn, scene_: Any, works: Any) -> Any:
        nothing = CellResult(read=0, written=0, unchanged=0, quarantined=0, digest="0:0:0")
        done = [(each.batch, nothing) for each in works]
        self.route.ledger.commit_cells(scene_.keeper.leases, done)
        return write(self, scene_, works)

    patch.setattr(Turn, "_write", hasty)


def takeover_without_waiting(patch: Patch) -> None:
    patch.setattr(slice_leases, "_is_free", lambda row, now: True)


def no_deadline(patch: Patch) -> None:
    patch.setattr(Deadline, "__call__", lambda self: None)


def deadline_by_client_timeout(patch: Patch) -> None:
    def is_early_enough(self: Deadline) -> bool:
        skew = self._terms.max_clock_skew_s
        return self._now() + LONGEST_CLIENT_WAIT_S < self._deadline - skew

    patch.setattr(Deadline, "_is_early_enough", is_early_enough)


def released_unanswered(patch: Patch) -> None:
    patch.setattr(Turn, "_all_answered", lambda self, written: True)


def batch_told_at_the_end(patch: Patch) -> None:
    patch.setattr(Keeper, "note_planned", lambda self: None)


def deadline_from_the_answer(patch: Patch) -> None:
    def wall_deadline(self: Keeper, leases: Any) -> float:
        return self._wall() + self._times.ttl.total_seconds()

    patch.setattr(Keeper, "_wall_deadline", wall_deadline)


def modes_by(rule: Callable[[Any, Any], Mode | None]) -> Callable[[Patch], None]:
    def apply(patch: Patch) -> None:
        decide = batch_plans._mode

        def mode(want: Any, row: Any) -> Mode:
            return rule(want, row) or decide(want, row)

        patch.setattr(batch_plans, "_mode", mode)

    return apply


def copy_over_a_plan(want: Any, row: Any) -> Mode | None:
    never_committed = row is None or row.batch is None
    return want.mode if never_committed and want.mode is not Mode.TOPUP else None


def copy_always(want: Any, row: Any) -> Mode | None:
    return want.mode if want.mode is not Mode.TOPUP else None


def t_goes_back(patch: Patch) -> None:
    patch.setattr(batch_plans, "_backward", lambda *args: iter(()))


def schema_goes_back(patch: Patch) -> None:
    refuse = batch_plans._backward

    def backward(*args: Any) -> Iterator[str]:
        return (why for why in refuse(*args) if "schema version" not in why)

    patch.setattr(batch_plans, "_backward", backward)


def failed_deletes_forgotten(patch: Patch) -> None:
    recorded = Ledger.recent_losses

    def committed(*args: Any) -> Any:
        return tuple(loss for loss in recorded(*args) if loss.is_committed)

    patch.setattr(Ledger, "recent_losses", committed)


def fingerprint_per_window(patch: Patch) -> None:
    commit = cell_commits.commit

    def for_all_slices(
        connection: Connection, leases: Any, done: Sequence[Any], **allowed: bool
    ) -> None:
        commit(connection, leases, done, **allowed)
        for batch, _ in done:
            here = (CELLS.c.route_id == batch.route.id, CELLS.c.batch.is_not(None))
            mine = connection.execute(CELLS.select().where(*here, CELLS.c.batch == batch.seq)).one()
            window = CELLS.c.range_start == batch.cell.start
            connection.execute(
                update(CELLS).where(*here, window).values(fingerprint=mine.fingerprint)
            )

    patch.setattr(Ledger, "commit_cells", writing_method(for_all_slices))


def quarantine_grows(patch: Patch) -> None:
    record = quarantine.record_rejections

    def added(connection: Any, table: Any, done: Any, now: Any) -> None:
        record(connection, table, [(replace(b, mode=Mode.TOPUP), r) for b, r in done], now)

    patch.setattr(quarantine, "record_rejections", added)
