"""One sensor for all tables: it looks for changed schemas, tells each change once, and follows it.

It ticks often and looks seldom: when the next look is due stands in its cursor, and with the claim
in the ledger, which all deployments share. What others have recorded meanwhile it tells at once.
"""

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from dagster import (
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.resources import LedgerResource
from bq_harper_assets.defs.schema.drift_cursor import DriftCursor
from bq_harper_assets.defs.schema.drift_news import News
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.records import NewestVersion
from bq_harper_assets.ledger.verbs.claims import Claim, ClaimRecord
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.stores.retry import RetryPolicy
from bq_harper_assets.sync.mirror.schemas import mirror_claim, unmirror_claim
from bq_harper_assets.sync.schema_sync.drift_round import Round, last_look, look_around
from bq_harper_assets.validation.schema_drift import SCHEMA_DRIFT_CHECK, DriftVerdict

TICK_SECONDS = 30
_ONCE = RetryPolicy(max_retries=0)


def build_drift_sensor(
    contracts: Sequence[TableContract], jobs: Sequence[UnresolvedAssetJobDefinition]
) -> SensorDefinition:
    """Looks at every table of the project, which all have one BigQuery connection."""

    @sensor(
        name=SCHEMA_DRIFT_CHECK,
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
        cursor = DriftCursor.model_validate_json(context.cursor or "{}")
        with ledger.open() as opened:
            now = opened.now()
            if cursor.next_look is None:
                cursor = cursor.begun(now, last_look(opened))
            newest = opened.newest_versions()
            known = [newest[each.id].recorded_at for each in contracts if each.id in newest]
            cursor = cursor.hurried(known)
            news = News(context.instance, opened, dict(cursor.tables))
            assert cursor.next_look is not None
            why = f"the next look is at {cursor.next_look:%F %T} UTC"
            if now >= cursor.next_look:
                shown = partial(_mirrored, context, harper)
                found = look_around(opened, bigquery.connection(), contracts, _node_id(), shown)
                if isinstance(found, Round):
                    return _looked(news, contracts, cursor.looked(found), found)
                why = _who_looks(found)
            _catch_up(news, contracts, cursor, newest)
            return _told(news, cursor, "; ".join([*news.said, why]))

    return schema_drift


def _node_id() -> str:
    """Who looks: `<host>-<pid>`."""
    return f"{socket.gethostname()}-{os.getpid()}"


def _looked(
    news: News, contracts: Sequence[TableContract], cursor: DriftCursor, found: Round
) -> SensorResult:
    """What is new since this deployment's last tick."""
    for contract in contracts:
        problem = found.last.problems.get(contract.id)
        figures = partial(_figures, found.calls, found.last.at, found.since)
        news.gather(contract, problem, figures, was_looked_at=True)
    return _told(news, cursor, _what_was_seen(found, news))


def _catch_up(
    news: News,
    contracts: Sequence[TableContract],
    cursor: DriftCursor,
    newest: Mapping[str, NewestVersion],
) -> None:
    """What syncs, people and other deployments have recorded since; nobody is asked for it."""
    behind = [each for each in contracts if news.is_behind(each, newest.get(each.id))]
    last = last_look(news.ledger) if behind else None
    for contract in behind:
        at = newest[contract.id].recorded_at
        # Whoever records a version has read the source: what an earlier look could not is over.
        problem = last.problems.get(contract.id) if last and at <= last.at else None
        figures = partial(_figures, 0, at, cursor.last_look)
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


def _figures(
    calls: int, seen_at: datetime, looked_before: datetime | None, verdict: DriftVerdict
) -> dict[str, Any]:
    figures: dict[str, Any] = {"metadata_calls": calls}
    if looked_before is not None and looked_before < seen_at and not verdict.passed:
        # At worst it has changed directly after the look before.
        figures["drift_detection_seconds"] = (seen_at - looked_before) / timedelta(seconds=1)
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
