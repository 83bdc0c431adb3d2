"""A source that BigQuery does not have is told before a run is made (keys: test_frozen_keys)."""

from typing import Any

import pytest

from bq_harper_assets.cli.exit_codes import ExitCode
from bq_harper_assets.cli.runs.readiness import (
    Readiness,
    SourceMissing,
    require_ready,
    require_source,
)
from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.settings.addresses import StackAddresses, write_addresses
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.schema.errors import SchemaMismatch
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets_tests.cli.typed import typed
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import TemporaryProject, hours_ago, table

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]
NO_DATASET = TableRef("local", "a_dataset_that_nobody_made", "orders")


def declared(source: TableRef, **more: Any) -> dict[str, Any]:
    return table(source, hours_ago(3), **more)


@pytest.mark.parametrize("command", ["sync", "sync --changed", "reconcile"])
def test_a_table_that_bigquery_does_not_have_is_told_in_one_line_and_no_run_is_made(
    project: TemporaryProject, tables: SmallTables, command: str
) -> None:
    for source in (tables.new_name(), NO_DATASET):
        loaded = project.declare(declared(source))
        [orders] = loaded.tables
        verb, *options = command.split()
        ended = typed(verb, orders.id, *options)
        assert isinstance(ended.exception, SourceMissing), ended.exception
        assert ended.exception.exit_code == ExitCode.USAGE
        assert str(ended.exception) == (
            f"BigQuery has no table {source}, which {orders.id} names as its source. Nothing was"
            " started. Correct it in config/tables.yaml (location is US), or create it in BigQuery;"
            f" then type: bqh sync {orders.id}"
        )
        assert ended.output == ""
        with project_instance(project.root) as instance:
            assert instance.get_runs() == []
        with open_ledger(loaded.ledger.url) as ledger:
            assert ledger.find_route(orders.id) is None


def test_a_column_that_the_source_does_not_have_is_told_before_a_run_is_made(
    project: TemporaryProject, tables: SmallTables
) -> None:
    source = tables.make("ts TIMESTAMP, number INT64")
    loaded = project.declare(declared(source, timestampColumn="tz"))
    [orders] = loaded.tables
    ended = typed("sync", orders.id)
    assert isinstance(ended.exception, SchemaMismatch), ended.exception
    assert ended.exception.exit_code == ExitCode.USAGE
    assert "timestampColumn: the source has no column tz; candidates are ts" in str(ended.exception)
    assert ended.output == ""
    with project_instance(project.root) as instance:
        assert instance.get_runs() == []


def test_a_table_that_was_never_synced_is_not_called_as_it_was_first_synced(
    project: TemporaryProject, tables: SmallTables
) -> None:
    loaded = project.declare(declared(tables.make("ts TIMESTAMP, number INT64")))
    assert require_ready(loaded, loaded.tables[0]) is Readiness.NEVER_SYNCED


def test_nothing_is_said_of_a_harper_that_did_not_answer(
    project: TemporaryProject, tables: SmallTables, stack: StackAddresses
) -> None:
    project.declare(declared(tables.make("ts TIMESTAMP, number INT64")))
    with FaultProxy(stack.harper_url) as between:
        addresses = stack.model_copy(update={"harper_url": between.url})
        write_addresses(local_folder(project.root), addresses)
        between.on(Answer(503, {"error": "busy"}), times=9)
        away = load_project(project.root)
        found = require_ready(away, away.tables[0])
    assert found is Readiness.NEVER_SYNCED_HARPER_NOT_ASKED


def test_a_table_that_only_a_query_names_is_missed_too(
    project: TemporaryProject, tables: SmallTables
) -> None:
    query = f"SELECT ts, number FROM {tables.new_name().sql}"
    own = declared(NO_DATASET, dataset=None, table=None, customQuery=query)
    loaded = project.declare(own)
    with pytest.raises(SourceMissing, match=f"a table that the customQuery of {own['id']} reads"):
        require_source(loaded, loaded.tables[0])


def test_what_the_run_is_patient_with_is_left_to_it(
    project: TemporaryProject, tables: SmallTables, stack: StackAddresses
) -> None:
    loaded = project.declare(declared(tables.make("ts TIMESTAMP, number INT64")))
    require_source(loaded, loaded.tables[0])
    with FaultProxy(stack.bigquery_url) as between:
        addresses = stack.model_copy(update={"bigquery_url": between.url})
        write_addresses(local_folder(project.root), addresses)
        between.on(Answer(503, {"error": {"message": "away"}}), times=9)
        away = load_project(project.root)
        require_source(away, away.tables[0])
        assert len(between.seen()) == 1
