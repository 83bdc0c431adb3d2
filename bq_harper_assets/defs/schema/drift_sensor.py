"""One sensor for all tables: it looks for changed schemas, tells each change once, and follows it.

It ticks often and looks every five minutes: when the next look is due stands in its cursor, and
with the claim in the ledger, which all deployments share. What others have recorded meanwhile it
tells at once.
"""

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetMaterialization,
    DagsterInstance,
    ResourceParam,
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from pydantic import BaseModel, ConfigDict, model_validator

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.names import evolve_job
from bq_harper_assets.defs.resources import BigQueryToHarperResource
from bq_harper_assets.defs.runs.active_runs import job_is_running
from bq_harper_assets.defs.schema.drift_check import evaluation
from bq_harper_assets.defs.schema.schema_asset import unshown, version_shown
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import NewestVersion
from bq_harper_assets.ledger.verbs.claims import Claim, ClaimRecord
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource
from bq_harper_assets.stores.bigquery.source import bigquery_source
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.mirror.schemas import mirror_claim, unmirror_claim
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.protocols import Source
from bq_harper_assets.sync.schema_sync.drift import (
    LOOK_EVERY,
    LastLook,
    Round,
    last_look,
    look_around,
)
from bq_harper_assets.sync.schema_sync.version_history import version_steps
from bq_harper_assets.validation.schema_drift import SCHEMA_DRIFT_CHECK, DriftVerdict, check_drift

TICK_SECONDS = 30
_ONCE = RetryPolicy(max_retries=0)


class Told(BaseModel):
    """Dagster was last told this of a table."""

    version: int = 0  # by the check
    verdict: str = ""
    shown: int = 0  # the version up to which the schema's asset has all


class DriftCursor(BaseModel):
    """A tick leaves this to the next, and shows it to whoever looks at the sensor."""

    model_config = ConfigDict(extra="ignore")

    next_look: datetime | None = None
    last_look: datetime | None = None
    metadata_calls: int = 0  # of the last look
    metadata_calls_so_far: int = 0
    could_not_look: dict[str, str] = {}  # by table, why
    tables: dict[str, Told] = {}

    @model_validator(mode="after")
    def _next_look_keeps_the_pace(self) -> "DriftCursor":
        """Brings a look forward that an earlier release, whose waits grew, has put off."""
        if self.last_look and self.next_look:
            self.next_look = min(self.next_look, self.last_look + LOOK_EVERY)
        return self

    def begun(self, now: datetime, last: LastLook | None) -> "DriftCursor":
        """Begins, or begins anew if the cursor was lost, with what all deployments know."""
        next_look = last.next_look if last else now + LOOK_EVERY
        known = {"next_look": next_look, "last_look": last.at if last else None}
        return self.model_copy(update=known)

    def looked(self, found: Round) -> "DriftCursor":
        """Notes a look, of this deployment or of another."""
        return self.model_copy(
            update={
                "next_look": found.last.next_look,
                "last_look": found.last.at,
                "metadata_calls": found.calls,
                "metadata_calls_so_far": self.metadata_calls_so_far + found.calls,
                "could_not_look": dict(found.away),
            }
        )


@dataclass(frozen=True, kw_only=True)
class News:
    """This collects, table by table, what Dagster is to be told; `told` is what it knows then."""

    instance: DagsterInstance
    ledger: Ledger
    told: dict[str, Told]
    checks: list[AssetCheckEvaluation] = field(default_factory=list)
    versions: list[AssetMaterialization] = field(default_factory=list)
    requests: list[RunRequest] = field(default_factory=list)

    @property
    def said(self) -> list[str]:
        """Gives the results in words, table by table."""
        return [f"{each.asset_key.path[-1]}: {each.description}" for each in self.checks]

    def is_behind(self, contract: TableContract, newest: NewestVersion | None) -> bool:
        """Says whether the ledger has a version that Dagster was not told of."""
        told = self.told.get(contract.id, Told())
        return newest is not None and (told.version, told.shown) != (newest.version,) * 2

    def gather(
        self,
        contract: TableContract,
        problem: str | None,
        figures: Callable[[DriftVerdict], Mapping[str, Any]],
        *,
        was_looked_at: bool,
    ) -> None:
        """Adds what is new of a table; `problem` is why it cannot be followed.

        What was told stands until a look finds it settled, so that somebody can see it.
        """
        before = self.told.get(contract.id, Told())
        verdict = check_drift(self.ledger, contract, before.version, problem)
        is_told = verdict.signature == before.verdict or (verdict.passed and not verdict.version)
        if not is_told and (was_looked_at or verdict.version != before.version):
            self.checks.append(evaluation(contract, verdict, figures(verdict)))
            if verdict.is_due:
                key = f"{contract.id}-{verdict.version}"
                self.requests.append(RunRequest(run_key=key, job_name=evolve_job(contract)))
            update = {"version": verdict.version, "verdict": verdict.signature}
            before = before.model_copy(update=update)
        if before.shown != verdict.version:
            # The newest is left to the run that follows it.
            is_left = verdict.is_due or job_is_running(self.instance, evolve_job(contract))
            before = self._show(contract, before, verdict.version - is_left)
        if before != Told():
            self.told[contract.id] = before

    def _show(self, contract: TableContract, before: Told, upto: int) -> Told:
        if before.shown == upto:
            return before
        steps = version_steps(self.ledger, contract)[:upto]
        new = unshown(self.instance, contract, steps)
        self.versions.extend(version_shown(contract, step) for step in new)
        return before.model_copy(update={"shown": upto})


def build_drift_sensor(
    contracts: Sequence[TableContract], jobs: Sequence[UnresolvedAssetJobDefinition]
) -> SensorDefinition:
    """Looks at every table of the project, which all have one BigQuery connection."""

    @sensor(
        name=SCHEMA_DRIFT_CHECK,
        jobs=jobs,
        minimum_interval_seconds=TICK_SECONDS,
        description="Looks for changed BigQuery schemas, every 5 minutes.",
    )
    def schema_drift(
        context: SensorEvaluationContext,
        bigquery_to_harper: ResourceParam[BigQueryToHarperResource],
    ) -> SensorResult:
        cursor = DriftCursor.model_validate_json(context.cursor or "{}")
        with bigquery_to_harper.ledger.open() as opened:
            now = opened.now()
            if cursor.next_look is None:
                cursor = cursor.begun(now, last_look(opened))
            newest = opened.newest_versions()
            news = News(instance=context.instance, ledger=opened, told=dict(cursor.tables))
            assert cursor.next_look is not None
            why = f"the next look is at {cursor.next_look:%F %T} UTC"
            if now >= cursor.next_look:
                shown = partial(_mirrored, context, bigquery_to_harper.harper)
                found = look_around(
                    opened,
                    partial(_source, bigquery_to_harper.bigquery),
                    contracts,
                    _node_id(),
                    shown,
                )
                if isinstance(found, Round):
                    return _looked(news, contracts, cursor.looked(found), found)
                why = _who_looks(found)
            _catch_up(news, contracts, cursor, newest)
            return _told(news, cursor, "; ".join([*news.said, why]))

    return schema_drift


def _source(bigquery: BigQueryConnectionResource) -> AbstractContextManager[Source]:
    # What is away now is looked at again in five minutes, so that nothing is sent twice.
    return bigquery_source(bigquery.connection(), {"bqh": "drift"}, harper_plan, retry=_ONCE)


def _node_id() -> str:
    """Names this process as the one that looks: `<host>-<pid>`."""
    return f"{socket.gethostname()}-{os.getpid()}"


def _looked(
    news: News, contracts: Sequence[TableContract], cursor: DriftCursor, found: Round
) -> SensorResult:
    """Tells what is new since this deployment's last tick."""
    for contract in contracts:
        problem = found.last.problems.get(contract.id)
        figures = partial(look_figures, found.calls, found.last.at, found.since)
        news.gather(contract, problem, figures, was_looked_at=True)
    return _told(news, cursor, _what_was_seen(found, news))


def _catch_up(
    news: News,
    contracts: Sequence[TableContract],
    cursor: DriftCursor,
    newest: Mapping[str, NewestVersion],
) -> None:
    """Tells what syncs, people and other deployments have recorded since; BigQuery is not asked."""
    behind = [each for each in contracts if news.is_behind(each, newest.get(each.id))]
    last = last_look(news.ledger) if behind else None
    for contract in behind:
        at = newest[contract.id].recorded_at
        # Whoever records a version has read the source: what an earlier look could not is over.
        problem = last.problems.get(contract.id) if last and at <= last.at else None
        figures = partial(look_figures, 0, at, cursor.last_look)
        news.gather(contract, problem, figures, was_looked_at=False)


def _told(news: News, cursor: DriftCursor, why: str) -> SensorResult:
    cursor = cursor.model_copy(update={"tables": news.told})
    return SensorResult(
        run_requests=news.requests or None,
        skip_reason=None if news.requests else SkipReason(why),
        cursor=cursor.model_dump_json(),
        asset_events=[*news.checks, *news.versions],
    )


def _what_was_seen(found: Round, news: News) -> str:
    next_look = f"the next look is at {found.last.next_look:%F %T} UTC"
    said = []
    if found.looked_at:
        said.append(f"looked at {len(found.looked_at)} tables with {found.calls} metadata calls")
    else:
        said.append(f"another deployment has looked at {found.last.at:%F %T} UTC")
    said += news.said
    said += [f"{name} could not be looked at: {why}" for name, why in found.away.items()]
    return "; ".join(
        [*said, next_look] if news.checks or found.away else [*said, "nothing is new", next_look]
    )


def look_figures(
    calls: int, seen_at: datetime, looked_before: datetime | None, verdict: DriftVerdict
) -> dict[str, Any]:
    """Tells what a look cost, and how late at worst it saw the change that it tells of."""
    figures: dict[str, Any] = {"metadata_calls": calls}
    if looked_before is not None and looked_before < seen_at and not verdict.passed:
        # At worst it has changed directly after the look before.
        figures["drift_detection_seconds"] = (seen_at - looked_before) / timedelta(seconds=1)
    return figures


@contextmanager
def _mirrored(
    context: SensorEvaluationContext, harper: HarperResource, claim: Claim
) -> Iterator[None]:
    """Keeps a copy of the claim in Harper for its readers; without it the look is as good."""

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
