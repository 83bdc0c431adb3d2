"""The ledger's face: each of its verbs and questions is one transaction.

What a verb does and refuses is said by its function, in `verbs/` or `questions/`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import wraps
from types import TracebackType
from typing import Concatenate, ParamSpec, TypeVar
from uuid import UUID

from pydantic import SecretStr
from sqlalchemy import Connection, select

from bq_harper_assets.ledger.questions import (
    left_overs,
    losses,
    mirrored_facts,
    progress,
    status,
    workers,
)
from bq_harper_assets.ledger.records import Leases, LogicalTable
from bq_harper_assets.ledger.store.columns import database_now
from bq_harper_assets.ledger.store.database import Database
from bq_harper_assets.ledger.store.migrate import migrate
from bq_harper_assets.ledger.store.tables import IDENTITY
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

P = ParamSpec("P")
R = TypeVar("R")


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


def _writes(verb: Callable[Concatenate[Connection, P], R]) -> Callable[Concatenate["Ledger", P], R]:
    """Makes a method that runs the verb in a transaction which commits all of it or nothing."""

    @wraps(verb)
    def method(ledger: "Ledger", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with ledger._database.writing() as connection:
            return verb(connection, *args, **kwargs)

    return method


def _reads(
    question: Callable[Concatenate[Connection, P], R],
) -> Callable[Concatenate["Ledger", P], R]:
    """Makes a method that asks in a transaction which locks and changes nothing."""

    @wraps(question)
    def method(ledger: "Ledger", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with ledger._database.reading() as connection:
            return question(connection, *args, **kwargs)

    return method


def _identity(connection: Connection) -> UUID:
    """Made once, with the ledger: a target that names another one belongs to another ledger."""
    return UUID(connection.execute(select(IDENTITY.c.uuid)).scalar_one())


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

    identity = _reads(_identity)
    now = _reads(database_now)

    # Tables, their starts and their slices.
    register_table = _writes(registry.register_table)
    refused_change = _reads(registry.refused_change)
    find_table = _reads(registry.find_table)
    tables = _reads(registry.all_tables)
    start_of = _reads(registry.start_of)
    record_start = _writes(registry.record_start)
    begin_earlier = _writes(registry.begin_earlier)
    change_slices = _writes(slice_counts.change_slices)
    distrust = _writes(distrust.distrust)

    @contextmanager
    def alone(self, table: LogicalTable) -> Iterator[None]:
        """Nobody else is in such a block for this table; for steps of seconds, not of minutes."""
        with self._database.writing() as connection:
            registry.lock(connection, table)
            yield

    # Schema versions.
    record_schema = _writes(schema_versions.record)
    newest_schema = _reads(schema_versions.newest)
    newest_versions = _reads(schema_versions.newest_of_all)
    schema_version = _reads(schema_versions.find)
    schema_history = _reads(schema_versions.history)
    rebase_fingerprints = _writes(fingerprint_changes.rebase)

    # Leases, and claims on what concerns no single table.
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

    note_mirrored = _writes(slice_leases.note_mirrored)
    leases = _reads(status.leases)
    mirrored = _reads(mirrored_facts.copies_known)
    newest = _reads(mirrored_facts.newest_of)
    workers = _reads(workers.workers)
    left_over = _reads(left_overs.left_over)
    claim = _writes(claims.claim)
    release_claim = _writes(claims.release)
    claims = _reads(claims.all_claims)

    # A batch's life: planned, marked, what it will delete, and its end.
    plan = _writes(batch_plans.plan)
    mark = _writes(cell_marks.mark)
    intend_deletes = _writes(intended_deletes.intend)
    commit_cells = _writes(cell_commits.commit)
    fail_batch = _writes(cell_commits.fail)
    refuse_batch = _writes(cell_commits.refuse)

    # Where cells and batches stand.
    cells = _reads(status.cells)
    history = _reads(status.history)
    slices_committed_at_other_times = _reads(status.slices_committed_at_other_times)
    schema_versions_of_batches = _reads(status.schema_versions_of_batches)
    recent_losses = _reads(losses.losses)
    rows_surely_held = _reads(mirrored_facts.rows_surely_held)
    checkpoints = _reads(progress.checkpoints)
    cell_counts = _reads(progress.cell_counts)
    progress = _reads(progress.progress)

    # Quarantine, proofs, audit.
    quarantined = _reads(status.quarantined)
    drop_quarantined = _writes(quarantine.drop)
    record_proofs = _writes(proofs.record)
    proved_cells = _reads(proofs.counted)
    cells_judged = _reads(proofs.cells_with)
    record_audit = _writes(audit.record_now)
    audit = _reads(audit.entries)
