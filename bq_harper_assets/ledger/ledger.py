"""The ledger is used through one class; each of its methods is one transaction.

The functions in `verbs/` and `questions/` say what each method does and what it refuses.
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
from bq_harper_assets.ledger.records import Leases, LedgerRoute
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
    key_ranges,
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
    """Opens the ledger, and makes or migrates it if needed.

    Lease deadlines are counted on the clock `monotonic`.
    """
    database = Database(url if isinstance(url, SecretStr) else SecretStr(url))
    try:
        migrate(database)
    except BaseException:
        database.close()
        raise
    return Ledger(database, monotonic)


def writing_method(
    verb: Callable[Concatenate[Connection, P], R],
) -> Callable[Concatenate["Ledger", P], R]:
    """Makes a method that runs the verb in a transaction which commits all of it or nothing."""

    @wraps(verb)
    def method(ledger: "Ledger", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with ledger._database.writing() as connection:
            return verb(connection, *args, **kwargs)

    return method


def reading_method(
    question: Callable[Concatenate[Connection, P], R],
) -> Callable[Concatenate["Ledger", P], R]:
    """Makes a method that reads in a transaction which locks and changes nothing."""

    @wraps(question)
    def method(ledger: "Ledger", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with ledger._database.reading() as connection:
            return question(connection, *args, **kwargs)

    return method


def _identity(connection: Connection) -> UUID:
    """Gives the id made with the ledger; a target that names another id has another ledger."""
    return UUID(connection.execute(select(IDENTITY.c.uuid)).scalar_one())


class Ledger:
    """The ledger knows who may write what, what was written, and what was refused.

    Threads may share it.
    """

    def __init__(self, database: Database, monotonic: Callable[[], float]) -> None:
        self._database = database
        self._monotonic = monotonic

    def __repr__(self) -> str:
        return f"Ledger({self._database.address})"

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
        """Closes all connections."""
        self._database.close()

    identity = reading_method(_identity)
    now = reading_method(database_now)

    # Routes, with the starts of their tables, their slices and key ranges.
    register_route = writing_method(registry.register_route)
    refused_change = reading_method(registry.refused_change)
    find_route = reading_method(registry.find_route)
    routes = reading_method(registry.all_routes)
    start_of = reading_method(registry.start_of)
    starts = reading_method(registry.all_starts)
    record_start = writing_method(registry.record_start)
    begin_earlier = writing_method(registry.begin_earlier)
    cut_by_key = writing_method(key_ranges.cut_by_key)
    key_ranges = reading_method(key_ranges.key_ranges)
    change_slices = writing_method(slice_counts.change_slices)
    distrust = writing_method(distrust.distrust)

    @contextmanager
    def alone(self, route: LedgerRoute) -> Iterator[None]:
        """Lets only one process at a time into such a block for this route.

        It is meant for steps of seconds, not of minutes.
        """
        with self._database.writing() as connection:
            registry.lock_route(connection, route)
            yield

    # Schema versions.
    record_schema = writing_method(schema_versions.record_schema)
    newest_schema = reading_method(schema_versions.newest)
    newest_versions = reading_method(schema_versions.newest_of_all)
    schema_version = reading_method(schema_versions.find)
    schema_history = reading_method(schema_versions.history)
    rebase_fingerprints = writing_method(fingerprint_changes.rebase)

    # Leases, and claims on what concerns no single table.
    def acquire(
        self, route: LedgerRoute, slices: Sequence[int], owner: str, ttl: timedelta
    ) -> Leases:
        """Takes the leases of all slices or of none; LeaseHeld says who has them and until when."""
        sent = self._monotonic()
        with self._database.writing() as connection:
            return slice_leases.acquire(connection, route, slices, owner, ttl, sent)

    def renew(self, leases: Leases, ttl: timedelta) -> Leases:
        """Gives the same leases with later deadlines; LeaseLost if one is not live any more."""
        sent = self._monotonic()
        with self._database.writing() as connection:
            return slice_leases.renew(connection, leases, ttl, sent)

    def release(self, leases: Leases, mirrored_batch: int | None = None) -> None:
        """Frees the leases that are still this owner's; raises LeaseLost for the others.

        Those stay with whoever has them now. `mirrored_batch` is the batch that the target's copies
        of these leases are known to name.
        """
        with self._database.writing() as connection:
            lost = slice_leases.release(connection, leases, mirrored_batch)
        if lost is not None:
            raise lost

    note_mirrored = writing_method(slice_leases.note_mirrored)
    leases = reading_method(status.leases)
    mirrored = reading_method(mirrored_facts.copies_known)
    newest = reading_method(mirrored_facts.newest_of)
    newest_commit = reading_method(mirrored_facts.newest_commit_of)
    workers = reading_method(workers.workers)
    left_over = reading_method(left_overs.left_over)
    claim = writing_method(claims.claim)
    release_claim = writing_method(claims.release_claim)
    claims = reading_method(claims.all_claims)

    # The life of a batch: its plan, its marks, what it will delete, and its end.
    plan = writing_method(batch_plans.plan)
    mark = writing_method(cell_marks.mark)
    intend_deletes = writing_method(intended_deletes.intend)
    commit_cells = writing_method(cell_commits.commit)
    recognise = writing_method(cell_commits.recognise)
    fail_batch = writing_method(cell_commits.fail)
    refuse_batch = writing_method(cell_commits.refuse)

    # The state of cells and batches.
    cells = reading_method(status.cells)
    history = reading_method(status.batch_history)
    slices_committed_at_other_positions = reading_method(status.slices_committed_at_other_positions)
    schema_versions_of_batches = reading_method(status.schema_versions_of_batches)
    recent_losses = reading_method(losses.losses)
    rows_surely_held = reading_method(mirrored_facts.rows_surely_held)
    checkpoints = reading_method(progress.checkpoints)
    cell_counts = reading_method(progress.cell_counts)
    progress = reading_method(progress.progress)

    # Quarantine, proofs, audit.
    quarantined = reading_method(status.quarantined)
    drop_quarantined = writing_method(quarantine.drop)
    record_proofs = writing_method(proofs.record_proofs)
    proved_cells = reading_method(proofs.counted)
    cells_judged = reading_method(proofs.cells_with)
    record_audit = writing_method(audit.record_now)
    audit = reading_method(audit.entries)
