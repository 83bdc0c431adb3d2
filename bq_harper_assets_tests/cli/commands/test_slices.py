"""`bqh slices set`: another number of slices, and nothing is lost or there twice."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from dagster import AssetRecordsFilter, DagsterRunStatus
from dagster._core.test_utils import create_run_for_test

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.names import target_key
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets_tests.cli.typed import told, typed, typed_well
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import HOUR, TemporaryProject, hours_ago, table

ROWS = 80


def twice_rows(start: datetime) -> str:
    """Two hours; without a key each row is there twice."""
    return (
        f"SELECT n AS number, CONCAT('ship ', CAST(n AS STRING)) AS name, TIMESTAMP_ADD(TIMESTAMP "
        f"'{start:%F %T}+00', INTERVAL n * 90 SECOND) AS ts "
        f"FROM UNNEST(GENERATE_ARRAY(0, {ROWS - 1})) AS n"
    )


def names(harper: HarperClient, contract: TableContract) -> list[str]:
    rows = harper.search_by_value(contract.target.table, "ts", "*", ("name", "_batch"))
    return sorted(row["name"] for row in rows)


def source_names(tables: SmallTables, source: TableRef) -> list[str]:
    rows = tables.queries.run(f"SELECT name FROM {source.sql}", doing="reading").rows
    return sorted(row["name"] for row in rows)


@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.spark
@pytest.mark.promise("N7")
@pytest.mark.parametrize("declared", [{}, {"key": ["number"]}], ids=["keyless", "keyed"])
def test_a_backfill_with_a_slice_that_lags_goes_on_under_another_number_of_slices(
    project: TemporaryProject,
    tables: SmallTables,
    harper_connection: HarperConnection,
    declared: dict[str, Any],
) -> None:
    start = hours_ago(4)
    rows = twice_rows(start)
    source = tables.make_from(rows if declared else f"{rows} UNION ALL {rows}")
    one = table(source, start, slices=4, **declared)

    def with_slices(count: int) -> TableContract:
        [contract] = project.declare(one | {"slices": count}).tables
        return contract

    def sync(*arguments: str) -> None:
        typed_well("sync", ships.id, "--to", f"{start + 2 * HOUR:%FT%H:%M}", *arguments)

    ships = with_slices(4)
    assert "never synced" in typed_well("slices", "set", ships.id, "4")
    sync("--slices", "0-2")  # and s03 lags
    early = typed("slices", "set", ships.id, "6")
    assert (early.exit_code, "write slices: 6 there" in early.stderr) == (2, True)
    with_slices(6)
    refused = typed("sync", ships.id)
    assert refused.exit_code == 1
    assert f"bqh slices set {ships.id} 6" in str(refused.exception)
    said = typed_well("slices", "set", ships.id, "6")
    assert "s04, s05 are new partition keys" in said
    tables.run(f"UPDATE {source.sql} SET name = 'renamed' WHERE number = 5")
    tables.run(f"DELETE FROM {source.sql} WHERE number = 70")
    sync("--slices", "1-5")  # and s00 lags
    with_slices(3)
    assert "s03, s04, s05 no longer exist as partitions" in typed_well(
        "slices", "set", ships.id, "3"
    )
    with HarperClient(harper_connection) as harper:
        nodes = harper.search_by_value("SyncCheckpoint", "tableId", ships.id, ("id",))
        assert {row["id"] for row in nodes} <= {f"{ships.id}|s0{n}" for n in range(3)}
        sync()
        assert names(harper, ships) == source_names(tables, source)
    found = told("verify", ships.id, "--to", f"{start + 2 * HOUR:%FT%H:%M}")
    assert (found["verdict"], len(found["cells"])) == ("equal", 6)
    with project_instance(project.root) as instance:
        [newest, _] = instance.fetch_observations(target_key(ships), limit=5).records
        assert newest.asset_observation
        assert "has 3 slices now and had 6" in str(newest.asset_observation.description)
        # Partition keys of slices that are no more keep their history.
        gone = f"{start:%FT%H:%M}|s05"
        wanted = AssetRecordsFilter(asset_key=target_key(ships), asset_partitions=[gone])
        [kept] = instance.fetch_materializations(wanted, limit=5).records
        assert kept.asset_materialization
        assert kept.asset_materialization.metadata


@pytest.mark.harper
@pytest.mark.bigquery
def test_it_is_refused_while_a_run_works_or_waits(project: TemporaryProject) -> None:
    start = hours_ago(2)
    declared = project.declare(table(TableRef("p", "sea", "ships"), start, slices=3))
    [ships] = declared.tables
    change = ("slices", "set", ships.id, "3")
    with open_ledger(declared.ledger.url) as ledger:
        facts = table_facts(ships, declared.bigquery.project)
        known = ledger.register_route(replace(facts, slices=2))
        leases = ledger.acquire(known, [1], "a-run", timedelta(minutes=5))
        held = typed(*change)
        assert held.exit_code == 1
        assert "a-run until" in str(held.exception)
        assert "bqh slices set" in str(held.exception)
        ledger.release(leases)
        with project_instance(project.root) as instance:
            run = create_run_for_test(
                instance, job_name=f"sync_{ships.id}", status=DagsterRunStatus.STARTED
            )
        waits = typed(*change)
        assert waits.exit_code == 1
        assert f"run {run.run_id} (started)" in str(waits.exception)
        unchanged = ledger.find_route(ships.id)
        assert unchanged
        assert unchanged.facts.slices == 2
        assert "s02 are new partition keys" in typed_well(*change, "--despite-runs")
        changed = ledger.find_route(ships.id)
        assert changed
        assert changed.facts.slices == 3
        assert "has 3 slices already" in typed_well(*change)
