"""Changes of the source's columns are detected, and each is recorded as the next schema version.

All tables are checked in one round, by one deployment at a time, at a fixed pace; each table costs
one metadata call. The result is left in the claim for the other deployments, so that each table is
checked once, however many of them share a ledger.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError, TransientError
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.verbs.claims import Claim, ClaimRecord
from bq_harper_assets.schema.change import Change
from bq_harper_assets.schema.changes import waiting_changes
from bq_harper_assets.schema.errors import SchemaMismatch, SchemaRefused
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.sync.ledger_facts import changes_of, record_version
from bq_harper_assets.sync.protocols import Source

LOOK_EVERY = timedelta(minutes=5)
CLAIM = "schema_check"
TTL = timedelta(minutes=10)
_LONGEST = 2_000  # characters of a problem that are left for others


@dataclass(frozen=True, kw_only=True)
class Drift:
    """A drift is what one check of a source's columns found."""

    version: int = 0  # newest after the check; 0: the table was never synced
    changes: tuple[Change, ...] = ()  # against the version before, if this check recorded one
    waiting: tuple[Change, ...] = ()  # what is left to a person
    problem: str | None = None  # why the source cannot be followed, and what to do


def look_for_drift(ledger: Ledger, source: Source, contract: TableContract, by: str) -> Drift:
    """Compares the columns with one metadata call, and records a change.

    What cannot be followed is returned as a problem.
    """
    table = ledger.find_route(contract.id)
    newest = ledger.newest_schema(table) if table else None
    if table is None or newest is None:
        return Drift()
    before = TableVersion.parse(newest.body)
    try:
        plan = source.planned(contract, before)
    except (SchemaMismatch, SchemaRefused) as error:
        return Drift(version=newest.version, problem=str(error))
    waiting = waiting_changes(plan.version, contract)
    if plan.version == before:
        return Drift(version=newest.version, waiting=waiting)
    cause = f"{contract.source.store} changed"
    recorded = record_version(ledger, table, contract, newest, plan, by, cause)
    changes = changes_of(recorded, newest, contract)
    return Drift(version=recorded.version, changes=changes, waiting=waiting)


class LastLook(BaseModel):
    """This is the result of a round that one deployment leaves for the others."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    at: datetime
    tables: tuple[str, ...]  # those that were checked
    problems: dict[str, str] = {}  # by table: why its schema cannot be followed

    @property
    def next_look(self) -> datetime:
        """Returns when all tables are due again."""
        return self.at + LOOK_EVERY


def last_look(ledger: Ledger) -> LastLook | None:
    """Returns the newest result of any deployment; None before the first."""
    note = next((claim.note for claim in ledger.claims() if claim.name == CLAIM), "")
    return _parsed(note)


def _parsed(note: str) -> LastLook | None:
    return LastLook.model_validate_json(note) if note else None


@dataclass(frozen=True, kw_only=True)
class Round:
    """A round is what this deployment, or the one before it, found in all tables."""

    last: LastLook
    looked_at: tuple[str, ...] = ()  # by this deployment; none if another one has checked
    calls: int = 0
    since: datetime | None = None  # the check before of the same tables
    away: Mapping[str, str] = field(default_factory=dict)  # why a table could not be checked


def look_around(
    ledger: Ledger,
    open_source: Callable[[], AbstractContextManager[Source]],
    contracts: Sequence[TableContract],
    by: str,
    shown: Callable[[Claim], AbstractContextManager[None]],
) -> Round | ClaimRecord:
    """Checks the tables that are due, inside `shown`.

    If another deployment checks now, its claim is returned instead.
    """
    claim = ledger.claim(CLAIM, by, TTL)
    if not isinstance(claim, Claim):
        return claim
    note = None
    try:
        last = _parsed(claim.note)
        now = ledger.now()
        # Within a round only tables that the deployments before did not check are due.
        part = last if last and now < last.next_look else None
        due = [table for table in contracts if part is None or table.id not in part.tables]
        if part is not None and not due:
            return Round(last=part)
        problems = dict(last.problems) if last else {}
        with shown(claim):
            away, calls = _look(ledger, open_source, due, by, problems)
        looked_at = tuple(table.id for table in due)
        after = LastLook(
            at=part.at if part else now,
            tables=(*part.tables, *looked_at) if part else looked_at,
            problems=problems,
        )
        note = after.model_dump_json()
        since = last.at if last and not part else None
        return Round(last=after, looked_at=looked_at, calls=calls, since=since, away=away)
    finally:
        ledger.release_claim(claim, note)


def _look(
    ledger: Ledger,
    open_source: Callable[[], AbstractContextManager[Source]],
    due: Sequence[TableContract],
    by: str,
    problems: dict[str, str],  # brought up to date here
) -> tuple[dict[str, str], int]:
    """Checks each table; returns why some could not be checked, and the number of calls."""
    away: dict[str, str] = {}
    with open_source() as source:
        for contract in due:
            try:
                problem = look_for_drift(ledger, source, contract, by).problem
            except TransientError as error:
                away[contract.id] = str(error)  # what was known of it stays valid
                continue
            except BqhError as error:
                problem = str(error)
            problems.pop(contract.id, None)
            if problem:
                problems[contract.id] = problem[:_LONGEST]
        return away, source.calls_sent
