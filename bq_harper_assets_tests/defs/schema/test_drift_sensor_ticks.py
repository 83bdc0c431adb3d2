"""What a tick of the drift sensor leaves and says: between looks, and when BigQuery is away."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetCheckEvaluation, DagsterInstance, build_sensor_context
from pydantic import SecretStr

from bq_harper_assets.defs.resources import (
    LEDGER_URLS,
    BigQueryToHarperResource,
    LedgerResource,
    SparkResource,
)
from bq_harper_assets.defs.schema.drift_sensor import DriftCursor, build_drift_sensor
from bq_harper_assets.defs.schema.schema_asset import build_evolve_job
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.verbs.audit import Note
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.sync.schema_sync.drift import LOOK_EVERY
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.validation.committed import MINUTE, registered, ships

ORDERS, PORTS = ships(), ships(id="ports", target_table="Ports")


@dataclass
class Ticking:
    """The sensor of two tables, with its cursor."""

    instance: DagsterInstance
    ledger: Ledger
    resources: BigQueryToHarperResource
    cursor: DriftCursor = field(default_factory=DriftCursor)
    skipped: str = ""

    def tick(self) -> list[Any]:
        """The events that it files."""
        jobs = [build_evolve_job(each) for each in (ORDERS, PORTS)]
        context = build_sensor_context(
            self.instance,
            cursor=self.cursor.model_dump_json(),
            resources={"bigquery_to_harper": self.resources},
        )
        told: Any = build_drift_sensor([ORDERS, PORTS], jobs)(context)
        self.cursor = DriftCursor.model_validate(json.loads(told.cursor))
        self.skipped = str(told.skip_reason.skip_message) if told.skip_reason else ""
        return list(told.asset_events)

    def look_is_due(self) -> None:
        now = self.ledger.now()
        changes = {"next_look": now - MINUTE, "last_look": now - LOOK_EVERY}
        self.cursor = self.cursor.model_copy(update=changes)


@pytest.fixture
def ticking(tmp_path: Path, nowhere: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ticking]:
    url = empty_ledger(tmp_path / "ledger.db")
    monkeypatch.setitem(LEDGER_URLS, url, SecretStr(url))
    with DagsterInstance.ephemeral() as instance, open_ledger(url) as ledger:
        resources = BigQueryToHarperResource(
            bigquery=BigQueryConnectionResource(project="p", endpoint=nowhere, max_retries=0),
            harper=HarperResource(url=nowhere, user="u", password="p"),
            ledger=LedgerResource(place=url),
            spark=SparkResource(spark_config={}, root=str(tmp_path), log=str(tmp_path / "log")),
        )
        yield Ticking(instance, ledger, resources)


def applied(ledger: Ledger) -> None:
    """A first version that a run has recorded and followed."""
    route = registered(ledger, ORDERS)
    ledger.record_audit(route, Note("schema", "version 1", "applied", {}))


def checks(events: list[Any]) -> list[tuple[str, bool]]:
    found = [each for each in events if isinstance(each, AssetCheckEvaluation)]
    return [(each.asset_key.path[-1], each.passed) for each in found]


def test_a_first_tick_waits_for_its_first_look_and_says_until_when(ticking: Ticking) -> None:
    before = ticking.ledger.now()
    assert ticking.tick() == []
    assert ticking.cursor.next_look
    assert before + LOOK_EVERY <= ticking.cursor.next_look <= ticking.ledger.now() + LOOK_EVERY
    assert ticking.skipped == f"the next look is at {ticking.cursor.next_look:%F %T} UTC"


def test_what_a_run_has_recorded_between_two_looks_is_told_at_once_and_only_once(
    ticking: Ticking,
) -> None:
    ticking.tick()
    applied(ticking.ledger)
    events = ticking.tick()
    assert checks(events) == [("Orders", True)]
    assert len(events) == 2  # the version is shown too
    assert ticking.skipped.startswith("Orders: as in BigQuery: schema version 1; the next look is")
    assert list(ticking.cursor.tables) == ["orders"]
    assert ticking.tick() == []


def test_a_look_without_an_answer_is_told_and_made_again_at_its_time(ticking: Ticking) -> None:
    applied(ticking.ledger)
    ticking.tick()
    ticking.look_is_due()
    before = ticking.ledger.now()
    ticking.tick()
    assert list(ticking.cursor.could_not_look) == ["orders"]  # the others have the same BigQuery
    assert "orders could not be looked at: " in ticking.skipped
    assert ticking.skipped.endswith(f"the next look is at {ticking.cursor.next_look:%F %T} UTC")
    assert ticking.cursor.last_look
    assert ticking.cursor.next_look
    assert ticking.cursor.last_look >= before - timedelta(seconds=1)
    assert ticking.cursor.next_look == ticking.cursor.last_look + LOOK_EVERY
    assert ticking.cursor.metadata_calls_so_far >= ticking.cursor.metadata_calls
