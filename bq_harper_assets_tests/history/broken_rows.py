"""Rules of rows and cells taken out or bent: what is read, compared, marked and written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import get_ident
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bq_harper_assets.instants import instant_at, micros_at
from bq_harper_assets.ledger.records import Mode
from bq_harper_assets.stores.bigquery import restriction, source
from bq_harper_assets.stores.harper import target
from bq_harper_assets.stores.harper.writing import harper_writer, row_writer
from bq_harper_assets.stores.harper.writing.removal import HarperRemoval
from bq_harper_assets.sync import ledger_facts, protocols
from bq_harper_assets.sync.identity import occurrences, row_hash, row_id
from bq_harper_assets.sync.moved import gone_or_moved
from bq_harper_assets.sync.plan import cell_work, planned_cells, shared_columns
from bq_harper_assets.sync.plan.cell_work import Vanished
from bq_harper_assets.sync.plan.delete_guard import Loss, refusals
from bq_harper_assets.sync.turn import reconcile
from bq_harper_assets.sync.write import write_job
from bq_harper_assets_tests.history.broken_ledger import modes_by
from bq_harper_assets_tests.history.watch import LAG

Patch = pytest.MonkeyPatch


def after_the_start(patch: Patch) -> None:
    between = restriction.between

    def later(column: Any, start: datetime, end: datetime, row_filter: str | None = None) -> str:
        return between(column, start, end, row_filter).replace(">=", ">", 1)

    patch.setattr(restriction, "between", later)


def no_window_test(patch: Patch) -> None:
    def everything(place: int, *args: Any) -> list[Any]:
        return [protocols.TargetRange(place, "0000", "9999")]

    patch.setattr(target, "ranges_of", everything)


def no_lookup(patch: Patch) -> None:
    def find(*args: Any) -> Vanished:
        return Vanished(list(args[-1]))

    patch.setattr(reconcile, "find_vanished", find)


def outside_upserted(patch: Patch) -> None:
    # Asked for the first and the last time that any window holds.
    within = gone_or_moved._in_windows
    patch.setattr(gone_or_moved, "_in_windows", lambda times, *span: within(times, 0, 2**62))


def mark_is_t(patch: Patch) -> None:
    lag = planned_cells._time_read_to

    def upto(contract: Any, window: Any, t: datetime) -> datetime:
        return lag(contract, window, t) if window.end <= t - contract.safety_lag else t

    def part(self: cell_work.CellWork) -> cell_work.Part:
        whole = ledger_facts.part_of(self.batch, self.cell)
        last = min(whole.end, micros_at(self.batch.t - LAG))
        return replace(whole, end=max(whole.begin, last))

    patch.setattr(planned_cells, "_time_read_to", upto)
    patch.setattr(cell_work.CellWork, "part", property(part))


def nulls_are_hashed(patch: Patch) -> None:
    patch.setattr(row_hash, "_absent", lambda array: None)


def two_t(patch: Patch) -> None:
    open_session = source.open_session

    def late(
        storage: Any, calls: Any, table: Any, columns: Any, within: Any, at: Any, n: int
    ) -> Any:
        return open_session(storage, calls, table, columns, within, datetime.now(UTC), n)

    patch.setattr(source, "open_session", late)


def unmarked(name: str) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(reconcile, name, lambda *args: None)


@dataclass(frozen=True, kw_only=True)
class _Stamped(protocols.Fingerprint):
    stamp: str = ""

    @property
    def text(self) -> str:
        return self.stamp


def fingerprint_of_now(patch: Patch) -> None:
    at_t = source.Pinned.fingerprints

    def fingerprints(pin: source.Pinned, begin: int, end: int) -> Any:
        now = replace(pin, source=replace(pin.source, at=datetime.now(UTC)))
        later = at_t(now, begin, end)
        return {
            start: _Stamped(rows=found.rows, distinct=found.distinct, stamp=later[start].text)
            for start, found in at_t(pin, begin, end).items()
        }

    patch.setattr(source.Pinned, "fingerprints", fingerprints)


def fingerprint_of_old_columns(patch: Patch) -> None:
    patch.setattr(shared_columns.SharedColumns, "is_told", lambda self, commit: True)


def topup_unseen(patch: Patch) -> None:
    def prefixes(scene_: Any, held_: Any, bases_: Any) -> Any:
        pin, found = scene_.source.pin, {}
        for cell, record in held_.items():
            commit = record.commit
            if commit is None or not record.is_clean or commit.is_closed:
                continue
            part = ledger_facts.committed_part(commit, cell)
            prints = pin.fingerprints(part.begin, part.end)
            found[cell] = (part.end, prints[part.begin])
        return found

    patch.setattr(planned_cells, "_prefixes", prefixes)


def close_by_topup(patch: Patch) -> None:
    topup_unseen(patch)
    prefixes, wanted = planned_cells._prefixes, planned_cells.Wanted
    held_until: dict[Any, datetime] = {}

    def remembered(scene_: Any, held_: Any, bases_: Any) -> Any:
        found = prefixes(scene_, held_, bases_)
        held_until.clear()
        held_until.update(
            {planned_cells.cell_key(cell): instant_at(upto) for cell, (upto, _) in found.items()}
        )
        return found

    def want(**asked: Any) -> Any:
        if asked["cell"] in held_until:
            asked |= {"mode": Mode.TOPUP, "since": held_until[asked["cell"]]}
        return wanted(**asked)

    patch.setattr(planned_cells, "_prefixes", remembered)
    patch.setattr(planned_cells, "Wanted", want)
    modes_by(lambda want, row: Mode.TOPUP if want.mode is Mode.TOPUP and row else None)(patch)


def guard_before_the_lookup(patch: Patch) -> None:
    def refuse(scene_: Any, works: Sequence[Any], *, allowed: bool) -> None:
        if allowed:
            return
        losses = {each.cell: Loss(len(each.diff.vanished), each.diff.held) for each in works}
        refused = refusals(scene_.source.contract.id, losses)
        for each in works:
            if each.cell in refused:
                each.refusal = refused[each.cell].why
                scene_.ledger.refuse_batch(each.batch, each.refusal)

    patch.setattr(reconcile, "refuse_great_losses", refuse)


def guard_before_the_intents(patch: Patch) -> None:
    refuse, decide = reconcile.refuse_great_losses, reconcile.refusals
    seen: dict[int, Any] = {}  # by the run's thread

    def looked_first(scene_: Any, works: Sequence[Any], *, allowed: bool) -> None:
        seen[get_ident()] = scene_.ledger.recent_losses(scene_.table, reconcile.REMEMBERED)
        refuse(scene_, works, allowed=allowed)

    def refused(table: str, losses: Any, others: Any, **settings: Any) -> dict[Any, Any]:
        return decide(table, losses, seen[get_ident()], **settings)

    patch.setattr(reconcile, "refuse_great_losses", looked_first)
    patch.setattr(reconcile, "refusals", refused)


def numbers_per_stream(patch: Patch) -> None:
    def numbers(counts: Any) -> Any:
        by_stream: dict[str, list[int]] = {}
        for _, content, stream, _ in counts:
            by_stream.setdefault(stream, []).append(content)
        return {
            stream: occurrences.Numbers(
                np.array(sorted(hashes), np.uint64), np.zeros(len(hashes), np.int64)
            )
            for stream, hashes in by_stream.items()
        }

    patch.setattr(write_job, "numbers_by_stream", numbers)


def numbers_by_read_order(patch: Patch) -> None:
    def number(self: Any, row_hashes: Any) -> Any:
        first = getattr(self, "_read", 0)
        self._read = first + len(row_hashes)
        return pa.array(np.arange(first, self._read))

    patch.setattr(occurrences.Counter, "number", number)


def stale_kept(patch: Patch) -> None:
    patch.setattr(harper_writer.Writer, "delete_stale", lambda self: self.settle())


def slice_by_the_number(patch: Patch) -> None:
    hashes = row_id.id_hashes
    patch.setattr(row_id, "id_hashes", lambda ids, keyless: hashes(ids, keyless=False))


def kept_rows_deleted(patch: Patch) -> None:
    remove = HarperRemoval.remove

    def all_the_same(
        self: HarperRemoval, batch: Any, ids: Any, policy: Any, primary_key: str, t: datetime
    ) -> None:
        remove(self, batch, ids, "mirror", primary_key, t)

    patch.setattr(HarperRemoval, "remove", all_the_same)


def flag_stays(patch: Patch) -> None:
    encode = row_writer.encode_batch

    def unflagged(batch: Any, plan: Any, *args: Any, **named: Any) -> Any:
        return encode(batch, replace(plan, flags_deletes=False), *args, **named)

    patch.setattr(row_writer, "encode_batch", unflagged)


def flag_unseen(patch: Patch) -> None:
    read = target.read_held

    def unflagged(client: Any, table: str, plan: Any, *args: Any) -> Any:
        return read(client, table, replace(plan, flags_deletes=False), *args)

    patch.setattr(target, "read_held", unflagged)
