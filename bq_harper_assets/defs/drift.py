"""One sensor for all tables: it looks for changed schemas, tells each change once, and follows it.

It ticks often and looks seldom: when the next look is due stands in its cursor, and with the claim
in the ledger, which all deployments share.
"""

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from pydantic import BaseModel, ConfigDict

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.drift_news import News, Told
from bq_harper_assets.defs.resources import LedgerResource
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.claims import Claim, ClaimRecord
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.stores.retry import RetryPolicy
from bq_harper_assets.sync.drift_pace import Pace
from bq_harper_assets.sync.drift_round import Round, look_around
from bq_harper_assets.sync.schema_mirror import mirror_claim, unmirror_claim
from bq_harper_assets.validation.drift import CHECK, DriftVerdict

TICK_SECONDS = 30
_ONCE = RetryPolicy(max_retries=0)


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
            news = News(context.instance, opened, dict(cursor.tables))
            return _told(news, contracts, cursor, found)

    return schema_drift


def node_id() -> str:
    """Who looks: `<host>-<pid>`."""
    return f"{socket.gethostname()}-{os.getpid()}"


def _told(
    news: News, contracts: Sequence[TableContract], cursor: Cursor, found: Round
) -> SensorResult:
    """What is new since this deployment's last tick."""
    for contract in contracts:
        problem = found.last.problems.get(contract.id)
        news.gather(contract, problem, partial(_figures, found))
    cursor = cursor.model_copy(
        update={
            "next_look": found.last.next_look,
            "last_look": found.last.at,
            "pace": found.last.pace,
            "metadata_calls": found.calls,
            "metadata_calls_so_far": cursor.metadata_calls_so_far + found.calls,
            "could_not_look": dict(found.away),
            "tables": news.told,
        }
    )
    return SensorResult(
        run_requests=news.requests or None,
        skip_reason=None if news.requests else SkipReason(_what_was_seen(found, news.checks)),
        cursor=cursor.model_dump_json(),
        asset_events=[*news.checks, *news.versions],
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
