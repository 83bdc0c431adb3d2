"""Which runs a change of slices waits for, and what Dagster is told of it."""

from dagster import AssetKey, DagsterInstance, DagsterRunStatus, job
from dagster._core.test_utils import create_run_for_test

from bq_harper_assets.defs.names import (
    ALL_TABLES_JOB,
    evolve_job,
    live_job,
    pool_of,
    schema_key,
    sync_job,
    target_key,
)
from bq_harper_assets.defs.tables.slice_change import note_change, unfinished
from bq_harper_assets.defs.tables.source_assets import build_source, source_key
from bq_harper_assets_tests.schema.samples import contract

ORDERS = contract(slices=3)


@job
def sync_orders() -> None:
    """Of the table."""


@job
def live_orders() -> None:
    """Of the table."""


@job
def sync_all_tables() -> None:
    """Of all tables."""


@job
def sync_ports() -> None:
    """Of another table."""


def test_runs_of_the_table_that_have_not_ended_are_named() -> None:
    with DagsterInstance.ephemeral() as instance:
        made = [
            instance.create_run_for_job(each, status=DagsterRunStatus.STARTED)
            for each in (sync_orders, live_orders, sync_all_tables)
        ]
        instance.create_run_for_job(sync_orders, status=DagsterRunStatus.SUCCESS)
        other = create_run_for_test(
            instance,
            status=DagsterRunStatus.NOT_STARTED,
            asset_selection=frozenset({target_key(ORDERS)}),
        )
        instance.create_run_for_job(sync_ports, status=DagsterRunStatus.STARTED)
        named = set(unfinished(instance, ORDERS))
    assert named == {
        *(f"run {run.run_id} (started)" for run in made),
        f"run {other.run_id} (not_started)",
    }


def test_a_change_is_noted_with_both_numbers() -> None:
    with DagsterInstance.ephemeral() as instance:
        note_change(instance, ORDERS, 5)
        [record] = instance.fetch_observations(target_key(ORDERS), limit=9).records
    noted = record.asset_observation
    assert noted
    assert noted.description
    assert noted.description.startswith("orders has 3 slices now and had 5.")
    told = {name: each.value for name, each in noted.metadata.items()}
    assert told == {"slices_before": 5, "slices": 3}


def test_dagster_knows_a_table_by_these_names() -> None:
    assert target_key(ORDERS) == AssetKey(["harper", "Orders"])
    assert schema_key(ORDERS) == AssetKey(["schema", "Orders"])
    assert pool_of(ORDERS) == "harper/Orders"
    names = (sync_job(ORDERS), live_job(ORDERS), evolve_job(ORDERS), ALL_TABLES_JOB)
    assert names == ("sync_orders", "live_orders", "evolve_orders", "sync_all_tables")
    assert source_key(ORDERS) == AssetKey(["bigquery", "shop", "orders"])
    assert build_source(ORDERS).description == "Source of Orders, read by event_time."
