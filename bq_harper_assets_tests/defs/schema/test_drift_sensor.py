"""Schemas change in BigQuery; the sensor sees it, tells it once, and has it followed."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from dagster import AssetCheckKey, AssetCheckSeverity, RunRequest
from google.cloud.bigquery import SchemaField
from pydantic import SecretStr
from sqlalchemy import text

from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.settings.addresses import StackAddresses, write_addresses
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.defs.names import schema_key, target_key
from bq_harper_assets.defs.runs.launch import QUIET
from bq_harper_assets.defs.schema.drift_sensor import DriftCursor, look_figures
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.store.database import Database
from bq_harper_assets.ledger.verbs.claims import Claim
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.errors import HarperError
from bq_harper_assets.stores.harper.mirror.tables import LOCKS, SCHEMAS
from bq_harper_assets.sync.schema_sync import drift
from bq_harper_assets.sync.schema_sync.drift import CLAIM, TTL
from bq_harper_assets.validation.schema_drift import DriftVerdict
from bq_harper_assets_tests.defs.conftest import Dagster
from bq_harper_assets_tests.defs.drifting import (
    CHECK,
    MINUTE,
    Drifting,
    LedgerClock,
    first_version,
    moment,
)
from bq_harper_assets_tests.defs.shown import shown
from bq_harper_assets_tests.fault_proxy import FaultProxy, LateAnswer, Seen
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.temporary_project import TemporaryProject, hours_ago, table

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]
COLUMNS = "number INT64, name STRING, ts TIMESTAMP"


def change_columns(
    tables: SmallTables, source: TableRef, *, without: str = "", **added: str
) -> None:
    """In BigQuery's description, which is all that the sensor reads."""
    described = tables.queries.client.get_table(str(source))
    kept = [field for field in described.schema if field.name != without]
    described.schema = [*kept, *(SchemaField(name, kind) for name, kind in added.items())]
    tables.queries.client.update_table(described, ["schema"])


@pytest.mark.promise("O4", "D8")
def test_a_change_is_told_once_without_a_run_then_followed_then_settled(
    dagster: Dagster,
    project: TemporaryProject,
    ledger: Ledger,
    tables: SmallTables,
    clock: LedgerClock,
) -> None:
    source = tables.make(COLUMNS)
    declared = project.declare(table(source, hours_ago(4), live=False, key="number"))
    [contract] = declared.tables
    first_version(declared, ledger, tables)
    sensor = Drifting(dagster=dagster, clock=clock)
    [request] = sensor.tick()
    assert sensor.cursor["metadata_calls_so_far"] == 0
    [told] = sensor.filed
    assert (told.passed, told.description) == (True, "as in BigQuery: schema version 1")
    sensor.run(request)
    assert dagster.harper.describe_table(contract.target.table) is not None
    assert sensor.look() == []
    assert sensor.filed == []

    change_columns(tables, source, speed="FLOAT64")
    runs = dagster.instance.get_runs_count()
    [request] = sensor.look()
    assert request.run_key == f"{contract.id}-2"
    assert dagster.instance.get_runs_count() == runs
    told = sensor.shown(contract)
    assert told is not None
    assert (told.passed, told.severity) == (False, AssetCheckSeverity.WARN)
    assert "speed added (FLOAT64): synced into speed from now on" in (told.description or "")
    assert f"bqh schema diff {contract.id}" in (told.description or "")
    assert "| speed | added |  | `FLOAT64` | synced into speed" in told.metadata["changes"].value
    assert told.metadata["schema_version"].value == 2
    assert told.metadata["metadata_calls"].value == 1
    assert 300 <= told.metadata["drift_detection_seconds"].value < 310
    in_ui = shown(dagster.root, dagster.instance, contract).current(CHECK)
    assert in_ui is not None
    assert in_ui["evaluation"]["severity"] == "WARN"

    for _ in range(2):
        assert sensor.look() == []
        assert sensor.filed == []
    assert "looked at 1 tables with 1 metadata calls; nothing is new" in (sensor.said or "")
    assert sensor.cursor["metadata_calls_so_far"] == 4

    sensor.run(request)
    [made] = dagster.instance.fetch_materializations(schema_key(contract), limit=1).records
    metadata = made.asset_materialization.metadata
    assert metadata["schema_version"].value == 2
    assert [each.name for each in metadata["dagster/column_schema"].schema.columns] == [
        *("number", "name", "ts", "speed")
    ]
    assert "| speed | added |" in metadata["changes"].value
    versions = dagster.harper.search_by_id(SCHEMAS.name, [f"{contract.id}-{n}" for n in (1, 2)])
    assert {row["version"]: (row["recordedBy"], row["cause"]) for row in versions}[1] == (
        *("a run", "first sync"),
    )
    [newest] = [row for row in versions if row["version"] == 2]
    assert [change["column"] for change in newest["changes"]] == ["speed"]
    recorded = ledger.schema_history(ledger.routes()[0])[1]
    assert newest["sourceFingerprint"] == recorded.source_fingerprint is not None
    assert [column["name"] for column in newest["columns"]][-1] == "speed"

    assert sensor.look() == []
    [told] = sensor.filed
    assert (told.passed, told.description) == (True, "as in BigQuery: schema version 2")
    assert sensor.look() == []
    assert sensor.filed == []


@pytest.mark.promise("D5")
def test_what_waits_what_is_frozen_and_what_is_gone_are_told_and_do_not_stop_the_others(
    dagster: Dagster,
    project: TemporaryProject,
    ledger: Ledger,
    tables: SmallTables,
    clock: LedgerClock,
) -> None:
    sources = [tables.make(COLUMNS) for _ in range(4)]
    policies: list[dict[str, Any]] = [{}, {"schemaPolicy": "approve"}, {"schemaPolicy": "freeze"}]
    declared = project.declare(
        *(
            table(source, hours_ago(4), key="number", **policy)
            for source, policy in zip(sources, [{}, *policies], strict=True)
        )
    )
    approves = declared.tables[2]
    first_version(declared, ledger, tables)
    sensor = Drifting(dagster=dagster, clock=clock)
    for request in sensor.tick():
        sensor.run(request)
    tables.run(f"DROP TABLE {sources[0].sql}")
    for source in sources[1:]:
        change_columns(tables, source, speed="FLOAT64")
    [request] = sensor.look()
    assert request.run_key == f"{declared.tables[1].id}-2"  # the others are left to a person
    assert sensor.cursor["metadata_calls"] == 4
    seen = [sensor.shown(contract) for contract in declared.tables]
    severities = [told.severity.value if told else None for told in seen]
    assert severities == ["ERROR", "WARN", "WARN", "ERROR"]
    texts = [told.description or "" if told else "" for told in seen]
    assert sources[0].table in texts[0]
    assert f"waits for: bqh schema apply {approves.id}" in texts[2]
    assert "not synced: the policy is freeze" in texts[3]
    assert not any(told.passed for told in seen if told)
    keys = {AssetCheckKey(target_key(contract), CHECK) for contract in declared.tables}
    job = sensor.definitions.resolve_implicit_global_asset_job_def()
    checked = job.get_subset(asset_selection=set(), asset_check_selection=keys)
    results = checked.execute_in_process(
        run_config=QUIET, instance=dagster.instance
    ).get_asset_check_evaluations()
    assert {each.asset_key: (each.severity, each.description) for each in results} == {
        target_key(contract): (told.severity, told.description)
        for contract, told in zip(declared.tables, seen, strict=True)
        if told
    }
    sensor.look()
    assert sensor.filed == []


def test_an_override_of_a_field_that_waits_does_not_fail_the_run_which_says_that_it_waits(
    dagster: Dagster,
    project: TemporaryProject,
    ledger: Ledger,
    tables: SmallTables,
    clock: LedgerClock,
) -> None:
    source = tables.make(f"{COLUMNS}, address STRUCT<zip STRING>")
    orders = table(source, hours_ago(4), key="number", schemaPolicy="approve")
    first_version(project.declare(orders), ledger, tables)
    described = tables.queries.client.get_table(str(source))
    zip_, city = SchemaField("zip", "STRING"), SchemaField("city", "STRING")
    described.schema = [
        *described.schema[:-1],
        SchemaField("address", "RECORD", fields=[zip_, city]),
        SchemaField("speed", "FLOAT64"),
    ]
    tables.queries.client.update_table(described, ["schema"])
    overrides = {"address.city": {"type": "string"}}
    [contract] = project.declare(orders | {"schemaOverrides": overrides}).tables
    sensor = Drifting(dagster=dagster, clock=clock)
    sensor.look()
    sensor.run(RunRequest(job_name=f"evolve_{contract.id}"))
    shown = sensor.versions(contract)[-1].metadata
    assert shown["schema_version"].value == 2
    assert str(shown["not_synced"].value).startswith("address widened (STRUCT<zip STRING> ->")
    columns = {each.name: each for each in shown["dagster/column_schema"].value.columns}
    assert "new fields wait" in columns["address"].constraints.other
    assert "new fields wait" not in columns["number"].constraints.other


@pytest.mark.promise("D5", "O4")
def test_sources_that_are_no_plain_table_are_looked_at_with_one_call_each_too(
    dagster: Dagster,
    project: TemporaryProject,
    ledger: Ledger,
    tables: SmallTables,
    clock: LedgerClock,
) -> None:
    sources = [tables.make(COLUMNS) for _ in range(3)]
    view = tables.new_name()
    tables.run(f"CREATE VIEW {view.sql} AS SELECT number, name, ts FROM {sources[1].sql}")
    query = f"SELECT * EXCEPT (name), CONCAT(name, '!') AS loud FROM {sources[0].sql}"
    declared = project.declare(
        table(sources[0], hours_ago(4), key="number", customQuery=query),
        table(view, hours_ago(4), key="number"),
        table(sources[2], hours_ago(4), key="number", latest=True),
    )
    first_version(declared, ledger, tables)
    sensor = Drifting(dagster=dagster, clock=clock)
    for request in sensor.tick():
        sensor.run(request)
    assert sensor.look() == []
    assert (sensor.filed, sensor.cursor["metadata_calls"]) == ([], 3)

    tables.run(f"ALTER TABLE {sources[0].sql} ADD COLUMN speed FLOAT64")
    change_columns(tables, sources[0], speed="FLOAT64")
    remade = f"SELECT ts, number, CAST(name AS BYTES) AS name FROM {sources[1].sql}"
    tables.run(f"CREATE OR REPLACE VIEW {view.sql} AS {remade}")
    change_columns(tables, sources[2], without="name")
    requests = sensor.look()
    assert sensor.cursor["metadata_calls"] == 3
    assert [each.run_key for each in requests] == [f"{each.id}-2" for each in declared.tables]
    texts = [told.description or "" for told in map(sensor.shown, declared.tables) if told]
    assert "speed added (FLOAT64): synced into speed from now on" in texts[0]
    assert "name retyped (STRING -> BYTES): synced into name_v2 from now on" in texts[1]
    assert "name removed (STRING): gone since 20" in texts[2]


@pytest.mark.promise("D7")
def test_all_looks_are_five_minutes_apart_and_a_restart_of_the_daemon_brings_none_forward(
    dagster: Dagster,
    project: TemporaryProject,
    ledger: Ledger,
    tables: SmallTables,
    clock: LedgerClock,
) -> None:
    source = tables.make(COLUMNS)
    declared = project.declare(table(source, hours_ago(4), live=False))
    first_version(declared, ledger, tables)
    sensor = Drifting(dagster=dagster, clock=clock)
    sensor.tick()
    for number in range(1, 5):
        if number == 3:
            change_columns(tables, source, without="name")
        clock.forward(5 * MINUTE - timedelta(seconds=30))
        assert sensor.tick() == []
        assert "the next look is at" in (sensor.said or "")
        assert sensor.cursor["metadata_calls_so_far"] == number - 1
        clock.forward(timedelta(seconds=31))
        sensor.tick()
        assert sensor.cursor["metadata_calls_so_far"] == number
        between = moment(sensor.cursor["next_look"]) - moment(sensor.cursor["last_look"])
        assert between == 5 * MINUTE
        assert len(sensor.filed) == (number == 3)
        sensor = Drifting(dagster=dagster, clock=clock, cursor=sensor.cursor)


@pytest.mark.promise("D5", "D6", "A12")
def test_of_five_deployments_one_looks_and_a_dead_one_is_replaced(
    dagster: Dagster,
    project: TemporaryProject,
    ledger: Ledger,
    tables: SmallTables,
    clock: LedgerClock,
    stack: StackAddresses,
) -> None:
    source = tables.make(COLUMNS)
    with FaultProxy(stack.bigquery_url) as proxy:
        addresses = stack.model_copy(update={"bigquery_url": proxy.url})
        write_addresses(local_folder(project.root), addresses)
        declared = project.declare(table(source, hours_ago(4), live=False, key="number"))
        first_version(declared, ledger, tables)
        deployments = [Drifting(dagster=dagster, clock=clock) for _ in range(5)]
        for each in deployments:
            each.tick()
        clock.forward(6 * MINUTE)
        proxy.on(LateAnswer(2.0), matching=lambda seen: _describes(seen, source))
        with ThreadPoolExecutor(5) as pool:
            calls = [pool.submit(each.tick) for each in deployments]
            locks = _row_when_there(dagster.harper)
            for call in calls:
                call.result()
        assert len([seen for seen in proxy.seen() if _describes(seen, source)]) == 1
        said = [each.said or "" for each in deployments]
        assert sum("another deployment looks (" in text for text in said) == 4
        assert set(locks) >= {"lockId", "nodeId", "acquiredAt", "expiresAt"}
        assert (locks["lockId"], locks["nodeId"] in said[0] + said[1]) == (CLAIM, True)
        assert dagster.harper.search_by_id(LOCKS.name, [CLAIM]) == []

        # Those that skipped learn from the ledger what the one has seen, and ask BigQuery nothing.
        change_columns(tables, source, speed="FLOAT64")
        leader = next(each for each in deployments if each.cursor["metadata_calls"])
        leader.look()
        before = len([seen for seen in proxy.seen() if _describes(seen, source)])
        for each in deployments:
            if each is not leader:
                each.tick()
                assert [told.passed for told in each.filed] == [False]
                assert each.cursor["next_look"] == leader.cursor["next_look"]
        assert len([seen for seen in proxy.seen() if _describes(seen, source)]) == before

    write_addresses(local_folder(project.root), stack)
    dead = ledger.claim(CLAIM, "elsewhere-7", TTL)
    assert isinstance(dead, Claim)
    LOCKS.upsert(dagster.harper, [{"lockId": CLAIM, "nodeId": "elsewhere-7"}])
    heir = Drifting(dagster=dagster, clock=clock, cursor=leader.cursor)
    heir.look()
    assert "another deployment looks (elsewhere-7, until 20" in (heir.said or "")
    dagster.harper.delete(LOCKS.name, [CLAIM])
    heir.tick()
    assert "another deployment looks (elsewhere-7" in (heir.said or "")
    database = Database(SecretStr(load_project(project.root).ledger.url.get_secret_value()))
    with database.writing() as connection:
        connection.execute(text("UPDATE claims SET expires_at = expires_at - 601000000"))
    database.close()
    heir.tick()
    assert heir.cursor["metadata_calls"] == 1
    assert not ledger.release_claim(dead)
    assert ledger.audit(kind="claim", limit=2)[-1].outcome == "taken over"


@pytest.mark.promise("D5")
def test_a_deployment_looks_at_the_tables_that_the_others_do_not_have(
    dagster: Dagster,
    project: TemporaryProject,
    ledger: Ledger,
    tables: SmallTables,
    clock: LedgerClock,
) -> None:
    both = [table(tables.make(COLUMNS), hours_ago(4), live=False) for _ in range(2)]
    project.declare(both[0])
    few = Drifting(dagster=dagster, clock=clock)
    first_version(project.declare(*both), ledger, tables)
    many = Drifting(dagster=dagster, clock=clock)
    for each in (few, many):
        each.tick()
    assert [len(each.filed) for each in (few, many)] == [1, 2]
    clock.forward(6 * MINUTE)
    for each in (few, many):
        each.tick()
    assert (few.cursor["metadata_calls"], many.cursor["metadata_calls"]) == (1, 1)
    assert many.cursor["next_look"] == few.cursor["next_look"]
    many.look()
    assert many.cursor["metadata_calls"] == 2
    few.tick()
    assert few.cursor["metadata_calls"] == 0
    assert "another deployment has looked at 20" in (few.said or "")


@pytest.mark.promise("D6")
def test_a_look_that_breaks_off_leaves_no_claim_behind(
    dagster: Dagster,
    project: TemporaryProject,
    ledger: Ledger,
    tables: SmallTables,
    clock: LedgerClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    declared = project.declare(table(tables.make(COLUMNS), hours_ago(4), live=False))
    first_version(declared, ledger, tables)
    sensor = Drifting(dagster=dagster, clock=clock)

    def broken(*args: Any) -> None:
        [claim] = ledger.claims()
        assert claim.is_live
        raise RuntimeError("a bug")

    monkeypatch.setattr(drift, "look_for_drift", broken)
    with pytest.raises(Exception, match="a bug"):
        sensor.look()
    [claim] = ledger.claims()
    assert (claim.owner, claim.is_live) == (None, False)
    assert dagster.harper.search_by_id(LOCKS.name, [CLAIM]) == []


def _describes(seen: Seen, source: TableRef) -> bool:
    return seen.method == "GET" and seen.path.partition("?")[0].endswith(f"/tables/{source.table}")


def _row_when_there(harper: HarperClient) -> dict[str, Any]:
    """Of the mirrored claim, which is there while somebody looks."""
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        with suppress(HarperError):  # the table is made with the first claim
            if rows := harper.search_by_id(LOCKS.name, [CLAIM]):
                return rows[0]
        time.sleep(0.005)
    raise AssertionError("no claim was mirrored within a minute")


def test_a_change_seen_before_the_last_look_is_told_without_how_long_it_took() -> None:
    late = DriftVerdict(version=2, passed=False, message="changed")
    seen, hour = hours_ago(3), timedelta(hours=1)
    assert look_figures(0, seen, seen - hour, late)["drift_detection_seconds"] == 3600
    assert "drift_detection_seconds" not in look_figures(0, seen, seen + hour, late)


def test_a_cursor_of_a_release_with_growing_waits_is_due_five_minutes_after_its_look() -> None:
    old = (
        '{"next_look": "2026-11-17T10:30:00Z", "last_look": "2026-11-17T10:00:00Z",'
        ' "pace": {"wait": "PT30M", "stable": 9}, "metadata_calls_so_far": 7}'
    )
    cursor = DriftCursor.model_validate_json(old)
    assert cursor.next_look == utc(2026, 11, 17, 10, 5)
    assert cursor.metadata_calls_so_far == 7
    assert DriftCursor.model_validate_json(cursor.model_dump_json()) == cursor
    begun = DriftCursor.model_validate_json('{"next_look": "2026-11-17T10:03:00Z"}')
    assert begun.next_look == utc(2026, 11, 17, 10, 3)
