"""The ledger's verbs, each one transaction; its questions are the reader's."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any

from pydantic import SecretStr

from bq_harper_assets.ledger.reader import LedgerReader
from bq_harper_assets.ledger.records import (
    Batch,
    CellKey,
    CellResult,
    Intent,
    Leases,
    LogicalTable,
    Mark,
    SchemaVersion,
    TableFacts,
    Wanted,
)
from bq_harper_assets.ledger.store.columns import database_now
from bq_harper_assets.ledger.store.database import Database
from bq_harper_assets.ledger.store.migrate import migrate
from bq_harper_assets.ledger.verbs import (
    audit,
    batch_plans,
    cell_commits,
    cell_marks,
    claims,
    distrust,
    fingerprint_changes,
    intended_deletes,
    proofs,
    quarantine,
    registry,
    schema_versions,
    slice_counts,
    slice_leases,
)


def open_ledger(
    url: SecretStr | str, *, monotonic: Callable[[], float] = time.monotonic
) -> "Ledger":
    """Opens the ledger, made or migrated if need be; lease deadlines are told on `monotonic`."""
    database = Database(url if isinstance(url, SecretStr) else SecretStr(url))
    try:
        migrate(database)
    except BaseException:
        database.close()
        raise
    return Ledger(database, monotonic)


class Ledger(LedgerReader):
    """Who may move what, what was moved, and what was refused. Threads may share it."""

    def __init__(self, database: Database, monotonic: Callable[[], float]) -> None:
        super().__init__(database)
        self._monotonic = monotonic

    def __repr__(self) -> str:
        return f"Ledger({self._database.place})"

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives all connections back."""
        self._database.close()

    def register_table(self, facts: TableFacts) -> LogicalTable:
        """The table by its name, made if new; TableChanged if its cells would change meaning."""
        with self._database.writing() as connection:
            return registry.register_table(connection, facts)

    def change_slices(self, table: LogicalTable, slices: int) -> LogicalTable:
        """The table with that many slices, all its cells to be reconciled; LeaseHeld if in use."""
        with self._database.writing() as connection:
            return slice_counts.change_slices(connection, table, slices)

    def distrust(
        self, table: LogicalTable, starts: Sequence[datetime], *, epoch: int, batch: int
    ) -> None:
        """Every cell of the table, and of windows that begin then, is to be compared; LeaseHeld.

        Epochs and batches go on after those given, which another ledger may have used.
        """
        with self._database.writing() as connection:
            distrust.distrust(connection, table, starts, epoch, batch)

    def begin_earlier(self, name: str, start: datetime) -> datetime:
        """The start that counts: this one, if none or only a later one was recorded."""
        with self._database.writing() as connection:
            return registry.begin_earlier(connection, name, start)

    @contextmanager
    def alone(self, table: LogicalTable) -> Iterator[None]:
        """Nobody else is in such a block for this table; for steps of seconds, not of minutes."""
        with self._database.writing() as connection:
            registry.lock_table(connection, table)
            yield

    def record_start(self, name: str, start: datetime) -> datetime:
        """The start that counts: the first that was recorded."""
        with self._database.writing() as connection:
            return registry.record_start(connection, name, start)

    def record_schema(
        self,
        table: LogicalTable,
        body: Mapping[str, Any],
        seen: int,
        by: str = "",
        cause: str = "",
        changes: Sequence[Mapping[str, Any]] | None = None,
        source_fingerprint: str | None = None,
    ) -> SchemaVersion:
        """The newest version if equal, else the next; SchemaMoved if `seen` is not the newest."""
        known = schema_versions.Origin(by, cause, changes, source_fingerprint)
        with self._database.writing() as connection:
            return schema_versions.record_schema(connection, table, body, seen, known)

    def rebase_fingerprints(
        self, table: LogicalTable, version: int, prints: Sequence[tuple[CellKey, int, str]]
    ) -> int:
        """How many cells, each given with its batch, have this fingerprint under `version` now.

        A cell that was committed since that batch keeps its own.
        """
        with self._database.writing() as connection:
            return fingerprint_changes.rebase(connection, table, version, prints)

    def claim(self, name: str, owner: str, ttl: timedelta) -> claims.Claim | claims.ClaimRecord:
        """The claim; or, if someone has it, the record that says who and until when."""
        with self._database.writing() as connection:
            return claims.claim(connection, name, owner, ttl)

    def release_claim(self, claim: claims.Claim, note: str | None = None) -> bool:
        """False if it is no longer this owner's: then it stays with whoever has it now.

        The next owner gets the note; without one it gets the note of the owner before.
        """
        with self._database.writing() as connection:
            return claims.release_claim(connection, claim, note)

    def acquire(
        self, table: LogicalTable, slices: Sequence[int], owner: str, ttl: timedelta
    ) -> Leases:
        """All slices or none; LeaseHeld says who has them and until when."""
        sent = self._monotonic()
        with self._database.writing() as connection:
            return slice_leases.acquire(connection, table, slices, owner, ttl, sent)

    def renew(self, leases: Leases, ttl: timedelta) -> Leases:
        """The same leases with later deadlines; LeaseLost if one of them is not live any more."""
        sent = self._monotonic()
        with self._database.writing() as connection:
            return slice_leases.renew(connection, leases, ttl, sent)

    def release(self, leases: Leases, mirrored_batch: int | None = None) -> None:
        """Frees what is still held; LeaseLost for the rest, which stays with whoever has it now.

        `mirrored_batch` is what the target's copies of these leases are known to name.
        """
        with self._database.writing() as connection:
            lost = slice_leases.release(connection, leases, mirrored_batch)
        if lost is not None:
            raise lost

    def note_mirrored(self, leases: Leases, batch: int) -> None:
        """The target's copies of these leases are known to name this batch; LeaseLost."""
        with self._database.writing() as connection:
            slice_leases.note_mirrored(connection, leases, batch)

    def plan(
        self,
        leases: Leases,
        t: datetime,
        schema_version: int,
        wanted: Sequence[Wanted],
        run_id: str,
    ) -> tuple[Batch, ...]:
        """A batch per cell with the mode it may take; to be done before the first write is sent."""
        with self._database.writing() as connection:
            return batch_plans.plan(connection, leases, t, schema_version, wanted, run_id)

    def mark(
        self,
        leases: Leases,
        t: datetime,
        marks: Sequence[Mark],
        unless_committed_at_t: bool = False,
    ) -> tuple[CellKey, ...]:
        """The cells that are dirty now; to be done before the write that moves the rows is sent.

        With the flag, a cell whose commit at `t` holds the row already is left as it is.
        """
        with self._database.writing() as connection:
            return cell_marks.mark(connection, leases, t, marks, unless_committed_at_t)

    def intend_deletes(self, leases: Leases, intents: Sequence[Intent], *, allowed: bool) -> None:
        """What batches will delete or flag; to be done before their first write is sent.

        Later runs count it until the batch is committed or refused, unless someone allowed it.
        """
        with self._database.writing() as connection:
            intended_deletes.intend(connection, leases, intents, allowed)

    def commit_cells(
        self,
        leases: Leases,
        done: Sequence[tuple[Batch, CellResult]],
        *,
        deletes_allowed: bool = False,
    ) -> None:
        """All of them or none, for the price of one transaction.

        What someone allowed to be deleted is not counted against later runs.
        """
        with self._database.writing() as connection:
            cell_commits.commit(connection, leases, done, deletes_allowed)

    def fail_batch(self, batch: Batch, error: str) -> None:
        """The batch ended without a commit; its cell may hold some of its rows."""
        with self._database.writing() as connection:
            cell_commits.fail(connection, batch, error)

    def refuse_batch(self, batch: Batch, reason: str, until: datetime | None = None) -> None:
        """The guard stopped the batch; its cell is reconciled once that is allowed, or after."""
        with self._database.writing() as connection:
            cell_commits.refuse(connection, batch, reason, until)

    def record_audit(self, table: LogicalTable | None, *notes: audit.Note) -> None:
        """For what happens outside the ledger: checks, changes to the target, commands."""
        with self._database.writing() as connection:
            audit.record(connection, table, database_now(connection), *notes)

    def record_proofs(self, table: LogicalTable, judged: Sequence[proofs.Judged]) -> None:
        """What proofs found; it counts until their cells are synced again."""
        with self._database.writing() as connection:
            proofs.record_proofs(connection, table, judged)

    def drop_quarantined(
        self, table: LogicalTable, cell: CellKey, numbers: Sequence[int] | None, who: str
    ) -> int:
        """How many of a cell's rows left quarantine: those of these numbers, or all (None)."""
        with self._database.writing() as connection:
            return quarantine.drop(connection, table, cell, numbers, who)
