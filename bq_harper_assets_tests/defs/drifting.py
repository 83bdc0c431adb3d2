"""The schema sensor as its user has it, on a clock that a test can set forward."""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetKey,
    AssetMaterialization,
    Definitions,
    RunRequest,
    build_sensor_context,
)

from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.runs.launch import QUIET
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.verbs import schema_versions
from bq_harper_assets.stores.bigquery.source import source_schema
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets.sync.schema_sync.drift import LOOK_EVERY
from bq_harper_assets_tests.stores.small_tables import SmallTables

if TYPE_CHECKING:  # whose fixtures make what is here
    from bq_harper_assets_tests.defs.conftest import Dagster

MINUTE = timedelta(minutes=1)
CHECK = "schema_drift"


class LedgerClock:
    """What every ledger says the time is, and when its schema versions were recorded.

    Leases and claims still go by the database.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._real = Ledger.now
        self._ahead = timedelta(0)
        clock = self
        patch.setattr(Ledger, "now", lambda ledger: clock._real(ledger) + clock._ahead)
        at = schema_versions.database_now
        patch.setattr(schema_versions, "database_now", lambda of: at(of) + clock._ahead)

    def forward(self, duration: timedelta) -> None:
        """From now on it is that much later."""
        self._ahead += duration


@dataclass(kw_only=True)
class Drifting:
    """One deployment's sensor, with its cursor; what it files is filed as the daemon does it."""

    dagster: "Dagster"
    clock: LedgerClock
    definitions: Definitions = field(init=False)
    cursor: dict[str, Any] = field(default_factory=dict)
    said: str | None = None
    filed: list[AssetCheckEvaluation] = field(default_factory=list)  # by the last tick

    def __post_init__(self) -> None:
        self.definitions = self.dagster.definitions()

    def tick(self) -> list[RunRequest]:
        """What it asks for."""
        with build_sensor_context(
            self.dagster.instance,
            cursor=json.dumps(self.cursor),
            definitions=self.definitions,
            resources=self.definitions.resources,
        ) as context:
            ticked = self.definitions.resolve_sensor_def(CHECK).evaluate_tick(context)
        if ticked.cursor is not None:
            self.cursor = json.loads(ticked.cursor)
        self.said = ticked.skip_message
        self.filed = [
            each for each in ticked.asset_events if isinstance(each, AssetCheckEvaluation)
        ]
        for event in ticked.asset_events:
            self.dagster.instance.report_runless_asset_event(event)
        return list(ticked.run_requests or ())

    def look(self) -> list[RunRequest]:
        """A tick when the next look has become due; the first tick only begins to wait."""
        if "next_look" not in self.cursor:
            self.tick()
        self.clock.forward(LOOK_EVERY + timedelta(seconds=1))
        return self.tick()

    def run(self, request: RunRequest) -> None:
        """Does what was asked for."""
        assert request.job_name
        job = self.definitions.resolve_job_def(request.job_name)
        job.execute_in_process(run_config=QUIET, instance=self.dagster.instance)

    def shown(self, contract: TableContract) -> AssetCheckEvaluation | None:
        """The result that Dagster has now."""
        key = AssetCheckKey(AssetKey(["harper", contract.target.table]), CHECK)
        storage = self.dagster.instance.event_log_storage
        record = storage.get_latest_asset_check_execution_by_key([key]).get(key)
        if record is None or record.event is None or record.event.dagster_event is None:
            return None
        return record.event.dagster_event.asset_check_evaluation_data

    def versions(self, contract: TableContract) -> list[AssetMaterialization]:
        """All that Dagster shows of the schema, oldest first."""
        key = AssetKey(["schema", contract.target.table])
        records = self.dagster.instance.fetch_materializations(key, limit=100).records
        made = [record.asset_materialization for record in records]
        return [each for each in reversed(made) if each]


def first_version(project: Project, ledger: Ledger, tables: SmallTables) -> None:
    """As if each table had been looked at once, and nothing done yet."""
    for contract in project.tables:
        known = ledger.register_route(table_facts(contract, project.bigquery.project))
        body = harper_plan(contract, source_schema(tables.queries, contract)).version.body()
        ledger.record_schema(known, body, 0, by="a run", cause="first sync")


def moment(text: str) -> datetime:
    """Of a cursor."""
    return datetime.fromisoformat(text)
