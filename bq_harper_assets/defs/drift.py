"""One sensor for all tables: it looks for changed schemas, tells each change once, and follows it.

It ticks often and looks seldom: when the next look is due stands in its cursor, and with the claim
in the ledger, which all deployments share.
"""

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    MetadataValue,
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    asset_check,
    sensor,
)
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from pydantic import BaseModel, ConfigDict

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.keys import target_key
from bq_harper_assets.defs.resources import LedgerResource
from bq_harper_assets.defs.schemas import evolve_job
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.claims import Claim, ClaimRecord
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.stores.retry import RetryPolicy
from bq_harper_assets.sync.drift_pace import Pace
from bq_harper_assets.sync.drift_round import Round, last_look, look_around
from bq_harper_assets.sync.schema_mirror import mirror_claim, unmirror_claim
from bq_harper_assets.validation.drift import CHECK, DriftVerdict, as_markdown, check_drift
from bq_harper_assets.validation.verdict import Severity

TICK_SECONDS = 30
_SEVERITY = {Severity.WARN: AssetCheckSeverity.WARN, Severity.ERROR: AssetCheckSeverity.ERROR}
_ONCE = RetryPolicy(max_retries=0)


class Told(BaseModel):
    """What Dagster was last told of a table."""

    version: int = 0
    verdict: str = ""


class Cursor(BaseModel):
    """What a tick leaves to the next, and shows to whoever looks at the sensor."""

    model_config = ConfigDict(extra="ignore")

    next_look: datetime | None = None
    last_look: datetime | None = None
    pace: Pace = Pace()
    metadata_calls: int = 0  # of the last look
    metadata_calls_so_far: int = 0
    could_not_look: dict[str, str] = {}  # by table, why
    tables: dict[str, Told] = {}


def build_drift_sensor(
    contracts: Sequence[TableContract], jobs: Sequence[UnresolvedAssetJobDefinition]
) -> SensorDefinition:
    """Looks at every table of the project, which all have one BigQuery connection."""

    @sensor(
        name=CHECK,
        jobs=jobs,
        minimum_interval_seconds=TICK_SECONDS,
        description="Looks for changed BigQuery schemas, every 5 to 30 minutes.",
    )
    def schema_drift(
        context: SensorEvaluationContext,
        bigquery: BigQueryConnectionResource,
        harper: HarperResource,
        ledger: LedgerResource,
    ) -> SensorResult:
        cursor = Cursor.model_validate_json(context.cursor or "{}")
        with ledger.open() as opened:
            now = opened.now()
            if cursor.next_look is None:
                cursor = cursor.model_copy(update={"next_look": now + cursor.pace.wait})
            assert cursor.next_look is not None
            if now < cursor.next_look:
                return _skipped(f"the next look is at {cursor.next_look:%F %T} UTC", cursor)
            shown = partial(_mirrored, context, harper)
            found = look_around(opened, bigquery.connection(), contracts, node_id(), shown)
            if isinstance(found, ClaimRecord):
                return _skipped(_who_looks(found), cursor)
            return _told(opened, contracts, cursor, found)

    return schema_drift


def build_drift_check(contract: TableContract) -> AssetChecksDefinition:
    """The sensor's check, as a run sees it: from the ledger, without asking BigQuery."""

    @asset_check(
        asset=target_key(contract),
        name=CHECK,
        description="BigQuery's schema is followed: nothing waits, and nothing is refused.",
    )
    def drift(ledger: LedgerResource) -> AssetCheckResult:
        with ledger.open() as opened:
            last = last_look(opened)
            problem = last.problems.get(contract.id) if last else None
            verdict = check_drift(opened, contract, problem=problem)
        return AssetCheckResult(
            passed=verdict.passed,
            severity=_SEVERITY[verdict.severity],
            description=verdict.message,
            metadata=_metadata(verdict),
        )

    return drift


def node_id() -> str:
    """Who looks: `<host>-<pid>`."""
    return f"{socket.gethostname()}-{os.getpid()}"


def _told(
    ledger: Ledger, contracts: Sequence[TableContract], cursor: Cursor, found: Round
) -> SensorResult:
    """What is new since this deployment's last tick becomes a check result, and perhaps a run."""
    events: list[AssetCheckEvaluation] = []
    requests: list[RunRequest] = []
    tables = dict(cursor.tables)
    for contract in contracts:
        before = tables.get(contract.id, Told())
        problem = found.last.problems.get(contract.id)
        verdict = check_drift(ledger, contract, before.version, problem)
        if verdict.signature == before.verdict or (verdict.passed and not verdict.version):
            continue
        tables[contract.id] = Told(version=verdict.version, verdict=verdict.signature)
        events.append(_evaluation(contract, verdict, _figures(found, verdict)))
        if verdict.is_due:
            key = f"{contract.id}-{verdict.version}"
            requests.append(RunRequest(run_key=key, job_name=evolve_job(contract)))
    cursor = cursor.model_copy(
        update={
            "next_look": found.last.next_look,
            "last_look": found.last.at,
            "pace": found.last.pace,
            "metadata_calls": found.calls,
            "metadata_calls_so_far": cursor.metadata_calls_so_far + found.calls,
            "could_not_look": dict(found.away),
            "tables": tables,
        }
    )
    return SensorResult(
        run_requests=requests or None,
        skip_reason=None if requests else SkipReason(_what_was_seen(found, events)),
        cursor=cursor.model_dump_json(),
        asset_events=events,
    )


def _what_was_seen(found: Round, events: Sequence[AssetCheckEvaluation]) -> str:
    next_look = f"the next look is at {found.last.next_look:%F %T} UTC"
    said = []
    if found.looked_at:
        said.append(f"looked at {len(found.looked_at)} tables with {found.calls} metadata calls")
    else:
        said.append(f"another deployment has looked at {found.last.at:%F %T} UTC")
    said += [f"{event.asset_key.path[-1]}: {event.description}" for event in events]
    said += [f"{name} could not be looked at: {why}" for name, why in found.away.items()]
    return "; ".join(
        [*said, next_look] if events or found.away else [*said, "nothing is new", next_look]
    )


def _figures(found: Round, verdict: DriftVerdict) -> dict[str, Any]:
    figures: dict[str, Any] = {"metadata_calls": found.calls}
    if found.since is not None and not verdict.passed:
        # At worst it has changed directly after the look before.
        figures["drift_detection_seconds"] = (found.last.at - found.since) / timedelta(seconds=1)
    return figures


def _evaluation(
    contract: TableContract, verdict: DriftVerdict, figures: Mapping[str, Any]
) -> AssetCheckEvaluation:
    return AssetCheckEvaluation(
        asset_key=target_key(contract),
        check_name=CHECK,
        passed=verdict.passed,
        severity=_SEVERITY[verdict.severity],
        description=verdict.message,
        metadata={**_metadata(verdict), **figures},
    )


def _metadata(verdict: DriftVerdict) -> dict[str, Any]:
    shown: dict[str, Any] = {"schema_version": verdict.version}
    if verdict.changes:
        shown["changes"] = MetadataValue.md(as_markdown(verdict.changes))
    return shown


@contextmanager
def _mirrored(
    context: SensorEvaluationContext, harper: HarperResource, claim: Claim
) -> Iterator[None]:
    """A copy of the claim for readers of Harper; without it the look is as good."""

    def copy(step: Any) -> None:
        try:
            with HarperClient(harper.connection(), retry=_ONCE) as client:
                warning = step(client, claim)
        except BqhError as error:
            warning = str(error)
        if warning:
            context.log.warning(warning)

    copy(mirror_claim)
    try:
        yield
    finally:
        copy(unmirror_claim)


def _who_looks(held: ClaimRecord) -> str:
    return f"another deployment looks ({held.owner}, until {held.expires_at:%F %T} UTC)"


def _skipped(why: str, cursor: Cursor) -> SensorResult:
    return SensorResult(skip_reason=SkipReason(why), cursor=cursor.model_dump_json())
