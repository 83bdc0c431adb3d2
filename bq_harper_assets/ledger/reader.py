"""The ledger's questions: each is one read transaction, which locks and changes nothing."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import select

from bq_harper_assets.ledger.errors import TableChanged
from bq_harper_assets.ledger.questions import left_overs, losses, progress, status, workers
from bq_harper_assets.ledger.questions.mirrored_facts import (
    Mirrored,
    Newest,
    copies_known,
    newest_of,
    rows_surely_held,
)
from bq_harper_assets.ledger.records import (
    Batch,
    CellKey,
    LogicalTable,
    NewestVersion,
    SchemaVersion,
    TableFacts,
)
from bq_harper_assets.ledger.store.columns import database_now
from bq_harper_assets.ledger.store.database import Database
from bq_harper_assets.ledger.store.tables import IDENTITY
from bq_harper_assets.ledger.verbs import audit, claims, proofs, registry, schema_versions


class LedgerReader:
    """Where each table stands, and what happened to it. Threads may share it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def identity(self) -> UUID:
        """Made once, with the ledger: a target that names another one belongs to another ledger."""
        with self._database.reading() as connection:
            return UUID(connection.execute(select(IDENTITY.c.uuid)).scalar_one())

    def now(self) -> datetime:
        """The database's clock."""
        with self._database.reading() as connection:
            return database_now(connection)

    def find_table(self, name: str) -> LogicalTable | None:
        """None if it was never registered."""
        with self._database.reading() as connection:
            return registry.find_table(connection, name)

    def refused_change(self, facts: TableFacts) -> TableChanged | None:
        """Why a table that was synced cannot be declared so; None if it can."""
        with self._database.reading() as connection:
            return registry.refused_change(connection, facts)

    def start_of(self, name: str) -> datetime | None:
        """Where the contract's first window begins; None if it was never recorded."""
        with self._database.reading() as connection:
            return registry.start_of(connection, name)

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

    def claims(self) -> tuple[claims.ClaimRecord, ...]:
        """By name: who may do what concerns no single table."""
        with self._database.reading() as connection:
            return claims.all_claims(connection)

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

    def recent_losses(
        self, table: LogicalTable, period: timedelta, besides: Sequence[Batch] = ()
    ) -> tuple[losses.CellLoss, ...]:
        """Rows that batches but `besides` took out of cells, or were about to, in the period.

        What someone allowed is left out, and so is all that was before it.
        """
        with self._database.reading() as connection:
            return losses.losses(connection, table, period, besides)

    def checkpoints(self, table: LogicalTable, start: datetime) -> tuple[progress.Checkpoint, ...]:
        """How far each slice has come, counted from the window that begins at `start`."""
        with self._database.reading() as connection:
            return progress.checkpoints(connection, table, start)

    def cell_counts(
        self, table: LogicalTable, start: datetime, closed: datetime
    ) -> tuple[progress.CellCount, ...]:
        """All cells by state and place: before `start`, closed by `closed`, or open."""
        with self._database.reading() as connection:
            return progress.cell_counts(connection, table, start, closed)

    def progress(self, table: LogicalTable, start: datetime) -> progress.Progress:
        """What lag and phase are computed from, counted from the window that begins at `start`."""
        with self._database.reading() as connection:
            return progress.progress(connection, table, start)

    def workers(self, table: LogicalTable) -> tuple[workers.Worker, ...]:
        """Runs that hold leases, or let them run out, with the cells they planned under these."""
        with self._database.reading() as connection:
            return workers.workers(connection, table)

    def history(
        self, table: LogicalTable, cell: CellKey | None = None, limit: int = 100
    ) -> tuple[status.BatchRecord, ...]:
        """Batches of the table or of one cell, newest first."""
        with self._database.reading() as connection:
            return status.batch_history(connection, table, cell, limit)

    def schema_versions_of_batches(
        self, table: LogicalTable, seqs: Collection[int]
    ) -> dict[int, int]:
        """The schema version that each of these batches wrote its rows under."""
        with self._database.reading() as connection:
            return status.schema_versions_of_batches(connection, table, seqs)

    def proved_cells(self, table: LogicalTable) -> tuple[proofs.ProvedCells, ...]:
        """All committed cells, counted by what their newest proofs found; one query."""
        with self._database.reading() as connection:
            return proofs.counted(connection, table)

    def cells_judged(
        self, table: LogicalTable, statuses: Collection[str], limit: int
    ) -> tuple[CellKey, ...]:
        """The first cells whose newest proof found one of these."""
        with self._database.reading() as connection:
            return proofs.cells_with(connection, table, statuses, limit)

    def mirrored(self, table: LogicalTable) -> tuple[Mirrored, ...]:
        """What the target's copies of the leases must say at least."""
        with self._database.reading() as connection:
            return copies_known(connection, table)

    def newest(self, table: LogicalTable) -> Newest:
        """What they can say at most."""
        with self._database.reading() as connection:
            return newest_of(connection, table)

    def rows_surely_held(self, table: LogicalTable) -> int:
        """By the target, in cells that nothing calls in question."""
        with self._database.reading() as connection:
            return rows_surely_held(connection, table)

    def leases(self, table: LogicalTable) -> tuple[status.LeaseRecord, ...]:
        """Who holds which slice."""
        with self._database.reading() as connection:
            return status.leases(connection, table)

    def left_over(self, table: LogicalTable) -> tuple[left_overs.LeftOver, ...]:
        """What each run has planned and not ended, or holds: it is at work, or it died."""
        with self._database.reading() as connection:
            return left_overs.left_over(connection, table)

    def quarantined(
        self, table: LogicalTable, cell: CellKey | None = None, limit: int = 1000
    ) -> tuple[status.QuarantinedRow, ...]:
        """Rows now in quarantine, of the table or of one cell."""
        with self._database.reading() as connection:
            return status.quarantined(connection, table, cell, limit)
