"""What a sync waits for is told in the same words in the terminal and in Dagster's log."""

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.defs.launch import project_instance
from bq_harper_assets_tests.cli.typed import typed_well
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    HOUR,
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)


@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.spark
def test_a_wait_stands_in_the_terminal_and_in_dagsters_log_in_the_same_words(
    project: TemporaryProject, proxy: FaultProxy, bigquery_connection: BigQueryConnection
) -> None:
    start = hours_ago(4)
    source = SmallTables.at(bigquery_connection).make_from(numbered_rows(start, rows=5))
    declared = project.declare(table(source, start, slices=1))
    [ships] = declared.tables
    busy = Answer(429, {"error": "slow down"}, {"Retry-After": "8"})
    proxy.on(busy, operation="create_table", table="SyncLease")
    first = start.replace(tzinfo=None)
    span = ("--from", f"{first:%FT%H:%M}", "--to", f"{first + HOUR:%FT%H:%M}")
    said = typed_well("sync", ships.id, *span)
    [line] = [each for each in said.splitlines() if "create_table on table 'SyncLease'" in each]
    assert line.startswith("waits for create_table on table 'SyncLease': Harper at ")
    assert "answered 429: slow down, since " in line
    assert "; tries again at " in line
    assert ", gives up at " in line
    with project_instance(declared.root) as instance:
        [run] = instance.get_runs()
        logged = [entry.user_message for entry in instance.all_logs(run.run_id)]
    assert line in logged
