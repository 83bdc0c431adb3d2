"""The ledger: each verb is one transaction."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any
from uuid import UUID

from pydantic import SecretStr
from sqlalchemy import select

from bq_harper_assets.ledger import (
    audit,
    claims,
    committing,
    leasing,
    losses,
    marking,
    planning,
    progress,
    quarantine,
    rebasing,
    registry,
    reslicing,
    schema_versions,
    status,
)
from bq_harper_assets.ledger.columns import database_now
from bq_harper_assets.ledger.database import Database
from bq_harper_assets.ledger.migrate import migrate
from bq_harper_assets.ledger.records import (
    Batch,
    CellKey,
    CellResult,
    Leases,
    LogicalTable,
    Mark,
    NewestVersion,
    SchemaVersion,
    TableFacts,
    Wanted,
)
from bq_harper_assets.ledger.tables import IDENTITY


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


class Ledger:
    """Who may move what, what was moved, and what was refused. Threads may share it."""

    def __init__(self, database: Database, monotonic: Callable[[], float]) -> None:
        self._database = database
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

    def identity(self) -> UUID:
        """Made once, with the ledger: a target that names another one belongs to another ledger."""
        with self._database.reading() as connection:
            return UUID(connection.execute(select(IDENTITY.c.uuid)).scalar_one())

    def now(self) -> datetime:
        """The database's clock."""
        with self._database.reading() as connection:
            return database_now(connection)

    def register_table(self, facts: TableFacts) -> LogicalTable:
        """The table by its name, made if new; TableChanged if its cells would change meaning."""
        with self._database.writing() as connection:
            return registry.register_table(connection, facts)

    def find_table(self, name: str) -> LogicalTable | None:
        """None if it was never registered."""
        with self._database.reading() as connection:
            return registry.find_table(connection, name)

    def change_slices(self, table: LogicalTable, slices: int) -> LogicalTable:
        """The table with that many slices, all its cells to be reconciled; LeaseHeld if in use."""
        with self._database.writing() as connection:
            return reslicing.change_slices(connection, table, slices)

    @contextmanager
    def alone(self, table: LogicalTable) -> Iterator[None]:
        """Nobody else is in such a block for this table; for steps of seconds, not of minutes."""
        with self._database.writing() as connection:
            registry.lock(connection, table)
            yield

    def start_of(self, name: str) -> datetime | None:
        """Where the contract's first window begins; None if it was never recorded."""
        with self._database.reading() as connection:
            return registry.start_of(connection, name)

    def record_start(self, name: str, start: datetime) -> datetime:
        """The start that counts: the first that was recorded."""
        with self._database.writing() as connection:
            return registry.record_start(connection, name, start)

    def tables(self) -> tuple[LogicalTable, ...]:
        """By name."""
        with self._database.reading() as connection:
            return registry.all_tables(connection)

    def newest_schema(self, table: LogicalTable) -> SchemaVersion | None:
        """To be asked before the source's columns are read; None before the first."""
        with self._database.reading() as connection:
            return schema_versions.newest(connection, table)

    def newest_versions(self) -> dict[str, NewestVersion]:
        """Of all tables, by name, at the price of one query."""
        with self._database.reading() as connection:
            return schema_versions.newest_of_all(connection)

    def schema_version(self, table: LogicalTable, version: int) -> SchemaVersion | None:
        """None if there is none of that number."""
        with self._database.reading() as connection:
            return schema_versions.find(connection, table, version)

    def schema_history(self, table: LogicalTable) -> tuple[SchemaVersion, ...]:
        """All versions, oldest first."""
        with self._database.reading() as connection:
            return schema_versions.history(connection, table)

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
            return schema_versions.record(connection, table, body, seen, known)

    def rebase_fingerprints(
        self, table: LogicalTable, version: int, prints: Sequence[tuple[CellKey, int, str]]
    ) -> int:
        """How many cells, each given with its batch, have this fingerprint under `version` now.

        A cell that was committed since that batch keeps its own.
        """
        with self._database.writing() as connection:
            return rebasing.rebase(connection, table, version, prints)

    def claim(self, name: str, owner: str, ttl: timedelta) -> claims.Claim | claims.ClaimRecord:
        """The claim; or, if someone has it, the record that says who and until when."""
        with self._database.writing() as connection:
            return claims.claim(connection, name, owner, ttl)

    def release_claim(self, claim: claims.Claim, note: str | None = None) -> bool:
        """False if it is no longer this owner's: then it stays with whoever has it now.

        The next owner gets the note; without one it gets the note of the owner before.
        """
        with self._database.writing() as connection:
            return claims.release(connection, claim, note)

    def claims(self) -> tuple[claims.ClaimRecord, ...]:
        """By name: who may do what concerns no single table."""
        with self._database.reading() as connection:
            return claims.all_claims(connection)

    def acquire(
        self, table: LogicalTable, slices: Sequence[int], owner: str, ttl: timedelta
    ) -> Leases:
        """All slices or none; LeaseHeld says who has them and until when."""
        sent = self._monotonic()
        with self._database.writing() as connection:
            return leasing.acquire(connection, table, slices, owner, ttl, sent)

    def renew(self, leases: Leases, ttl: timedelta) -> Leases:
        """The same leases with later deadlines; LeaseLost if one of them is not live any more."""
        sent = self._monotonic()
        with self._database.writing() as connection:
            return leasing.renew(connection, leases, ttl, sent)

    def release(self, leases: Leases) -> None:
        """Frees what is still held; LeaseLost for the rest, which stays with whoever has it now."""
        with self._database.writing() as connection:
            lost = leasing.release(connection, leases)
        if lost is not None:
            raise lost

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
            return planning.plan(connection, leases, t, schema_version, wanted, run_id)

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
            return marking.mark(connection, leases, t, marks, unless_committed_at_t)

    def commit_cell(self, leases: Leases, batch: Batch, result: CellResult) -> None:
        """The cell now holds what `result` says; refused without a live lease."""
        self.commit_cells(leases, [(batch, result)])

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
            committing.commit(connection, leases, done, deletes_allowed)

    def fail_batch(self, batch: Batch, error: str) -> None:
        """The batch ended without a commit; its cell may hold some of its rows."""
        with self._database.writing() as connection:
            committing.fail(connection, batch, error)

    def refuse_batch(self, batch: Batch, reason: str) -> None:
        """The guard stopped the batch; its cell is reconciled once that is allowed."""
        with self._database.writing() as connection:
            committing.refuse(connection, batch, reason)

    def record_audit(self, table: LogicalTable | None, *notes: audit.Note) -> None:
        """For what happens outside the ledger: checks, changes to the target, commands."""
        with self._database.writing() as connection:
            audit.record(connection, table, database_now(connection), *notes)

    def audit(
        self, table: LogicalTable | None = None, limit: int = 100, *, kind: str | None = None
    ) -> tuple[audit.AuditEntry, ...]:
        """Newest first."""
        with self._database.reading() as connection:
            return audit.entries(connection, table, kind, limit)

    def cells(
        self,
        table: LogicalTable,
        start: datetime,
        end: datetime,
        slices: Sequence[int] | None = None,
    ) -> tuple[status.CellRecord, ...]:
        """Cells whose window starts in [start, end), by window and slice."""
        with self._database.reading() as connection:
            return status.cells(connection, table, start, end, slices)

    def slices_committed_at_other_times(self, table: LogicalTable, t: datetime) -> frozenset[int]:
        """Only in these can a write of `t` take a row out of a cell that does not know of it."""
        with self._database.reading() as connection:
            return status.slices_committed_at_other_times(connection, table, t)

    def recent_losses(self, table: LogicalTable, period: timedelta) -> tuple[losses.CellLoss, ...]:
        """Rows that runs took out of cells within the period, and that nobody had allowed."""
        with self._database.reading() as connection:
            return losses.losses(connection, table, period)

    def checkpoints(self, table: LogicalTable, start: datetime) -> tuple[progress.Checkpoint, ...]:
        """How far each slice has come, counted from the window that begins at `start`."""
        with self._database.reading() as connection:
            return progress.checkpoints(connection, table, start)

    def progress(self, table: LogicalTable, start: datetime) -> progress.Progress:
        """What lag and phase are computed from, counted from the window that begins at `start`."""
        with self._database.reading() as connection:
            return progress.progress(connection, table, start)

    def history(
        self, table: LogicalTable, cell: CellKey | None = None, limit: int = 100
    ) -> tuple[status.BatchRecord, ...]:
        """Batches of the table or of one cell, newest first."""
        with self._database.reading() as connection:
            return status.history(connection, table, cell, limit)

    def schema_versions_of_batches(
        self, table: LogicalTable, seqs: Collection[int]
    ) -> dict[int, int]:
        """The schema version that each of these batches wrote its rows under."""
        with self._database.reading() as connection:
            return status.schema_versions_of_batches(connection, table, seqs)

    def leases(self, table: LogicalTable) -> tuple[status.LeaseRecord, ...]:
        """Who holds which slice."""
        with self._database.reading() as connection:
            return status.leases(connection, table)

    def quarantined(
        self, table: LogicalTable, cell: CellKey | None = None, limit: int = 1000
    ) -> tuple[status.QuarantinedRow, ...]:
        """Rows now in quarantine, of the table or of one cell."""
        with self._database.reading() as connection:
            return status.quarantined(connection, table, cell, limit)

    def drop_quarantined(
        self, table: LogicalTable, cell: CellKey, numbers: Sequence[int] | None, who: str
    ) -> int:
        """How many of a cell's rows left quarantine: those of these numbers, or all (None)."""
        with self._database.writing() as connection:
            return quarantine.drop(connection, table, cell, numbers, who)
