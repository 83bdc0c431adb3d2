"""One look at the schemas of all tables, by one deployment at a time.

Each table costs one metadata call. What was seen is left to the other deployments with the claim,
so that however many share a ledger, each table is looked at once.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError, TransientError
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.verbs.claims import Claim, ClaimRecord
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.errors import Feature
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.breaker import PROCESS_BREAKERS
from bq_harper_assets.stores.retry import RetryPolicy
from bq_harper_assets.sync.schema_sync.drift import look_for_drift
from bq_harper_assets.sync.schema_sync.drift_pace import SHORTEST, LastLook, Pace

CLAIM = "schema_check"
TTL = timedelta(minutes=10)
_LONGEST = 2_000  # characters of a problem that others are told

_Result = TypeVar("_Result")


class CountedCalls(BigQueryCalls):
    """Sends each call once, and counts what it sends."""

    def __init__(self, connection: BigQueryConnection) -> None:
        super().__init__(connection, retry=RetryPolicy(max_retries=0), breakers=PROCESS_BREAKERS)
        self.sent = 0

    def call(
        self,
        send: Callable[[], _Result],
        *,
        doing: str,
        feature: Feature,
        table: str | None = None,
        cell: str | None = None,
        limit_s: float | None = None,
    ) -> _Result:
        """As it is, counted."""

        def counted() -> _Result:
            self.sent += 1
            return send()

        return super().call(
            counted, doing=doing, feature=feature, table=table, cell=cell, limit_s=limit_s
        )


@dataclass(frozen=True)
class Round:
    """What is known of all tables now."""

    last: LastLook
    looked_at: tuple[str, ...]  # by this deployment; none: another one has looked
    calls: int
    since: datetime | None  # the look before at the same tables
    away: Mapping[str, str]  # by table: why it could not be looked at this time


def look_around(
    ledger: Ledger,
    connection: BigQueryConnection,
    contracts: Sequence[TableContract],
    by: str,
    shown: Callable[[Claim], AbstractContextManager[None]],
) -> Round | ClaimRecord:
    """Looks at what is due, `shown` around it; or, if another deployment looks, who it is."""
    claim = ledger.claim(CLAIM, by, TTL)
    if not isinstance(claim, Claim):
        return claim
    note = None
    try:
        last = _last(claim.note, ledger, contracts)
        now = ledger.now()
        is_time = last is None or now >= last.next_look
        due = [table for table in contracts if is_time or table.id not in _tables(last)]
        if last is not None and not due:
            return Round(last, (), 0, None, {})
        with shown(claim):
            found = _look(ledger, connection, due, by, last, now)
        note = found.last.model_dump_json()
        return found
    finally:
        ledger.release_claim(claim, note)


def _look(
    ledger: Ledger,
    connection: BigQueryConnection,
    due: Sequence[TableContract],
    by: str,
    last: LastLook | None,
    now: datetime,
) -> Round:
    calls = CountedCalls(connection)
    queries = Queries(calls, labels={"bqh": "drift"})
    known = dict(last.problems) if last else {}
    problems = dict(known)
    away: dict[str, str] = {}
    changed = False
    with queries.client:
        for contract in due:
            try:
                drift = look_for_drift(ledger, queries, contract, by)
                problem = drift.problem
                changed |= drift.is_new
            except TransientError as error:
                away[contract.id] = str(error)  # whatever was known of it still holds
                continue
            except BqhError as error:
                problem = str(error)
            problems.pop(contract.id, None)
            if problem:
                problems[contract.id] = problem[:_LONGEST]
    changed |= any(known.get(name) != text for name, text in problems.items())
    looked_at = tuple(contract.id for contract in due)
    # Within a round: these are tables that the deployments before do not have.
    part = last if last and now < last.next_look else None
    pace = last.pace if last else Pace()
    if changed or not (part or away):
        pace = pace.after(changed=changed)
    next_look = now + (SHORTEST if away else pace.wait)
    after = LastLook(
        at=part.at if part else now,
        next_look=min(next_look, part.next_look) if part else next_look,
        pace=pace,
        tables=(*part.tables, *looked_at) if part else looked_at,
        problems=problems,
    )
    since = last.at if last and not part else None
    return Round(after, looked_at, calls.sent, since, away)


def _last(note: str, ledger: Ledger, contracts: Sequence[TableContract]) -> LastLook | None:
    if not note:
        return None
    newest = ledger.newest_versions()
    recorded = (newest[table.id].recorded_at for table in contracts if table.id in newest)
    return LastLook.model_validate_json(note).hurried(recorded)


def _tables(last: LastLook | None) -> tuple[str, ...]:
    return last.tables if last else ()


def last_look(ledger: Ledger) -> LastLook | None:
    """By whichever deployment; None before the first."""
    note = next((claim.note for claim in ledger.claims() if claim.name == CLAIM), "")
    return LastLook.model_validate_json(note) if note else None
