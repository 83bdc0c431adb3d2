"""What a sync waits for is told in the same words in the terminal and in Dagster's log."""

import click
import pytest

from bq_harper_assets.cli.main import COMMANDS
from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.retries.waiting import WAITS
from bq_harper_assets_tests.cli.typed import typed, typed_well
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    HOUR,
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)


@click.command()
def waiting() -> None:
    with WAITS.waiting("the test of a command", "goes on", at_once=True):
        click.echo("{}")


def test_whatever_a_command_waits_for_is_told_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "waiting", f"{__name__}:waiting")
    ended = typed("waiting")
    assert ended.exit_code == 0, ended.exception
    assert ended.stdout == "{}\n"
    assert ended.stderr.startswith("waits for the test of a command, since ")


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
    proxy.on(busy, operation="upsert", table=ships.target_table)
    first = start.replace(tzinfo=None)
    span = ("--from", f"{first:%FT%H:%M}", "--to", f"{first + HOUR:%FT%H:%M}")
    said = typed_well("sync", ships.id, *span)
    [line] = [each for each in said.splitlines() if "create_table on table 'SyncLease'" in each]
    assert line.startswith("waits for create_table on table 'SyncLease': Harper at ")
    assert "answered 429: slow down, since " in line
    assert "; tries again at " in line
    assert ", gives up at " in line
    [of_task] = [each for each in said.splitlines() if each.startswith("a task waits for ")]
    assert of_task.startswith(f"a task waits for upsert on table '{ships.target_table}'")
    assert "; tries again at " in of_task
    with project_instance(declared.root) as instance:
        [run] = instance.get_runs()
        logged = [entry.user_message for entry in instance.all_logs(run.run_id)]
    assert {line, of_task} <= set(logged)


@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.spark
def test_a_harper_that_is_busy_for_good_ends_the_run_with_its_deadline(
    project: TemporaryProject, proxy: FaultProxy, bigquery_connection: BigQueryConnection
) -> None:
    start = hours_ago(4)
    source = SmallTables.at(bigquery_connection).make_from(numbered_rows(start, rows=5))
    sync = {"startTimestamp": f"{start:%FT%TZ}", "giveUpAfter": "4s"}
    [ships] = project.declare(table(source, start, slices=1, sync=sync)).tables
    busy = Answer(503, {"error": "busy"})
    proxy.on(busy, operation="create_table", table="SyncLease", times=999)
    first = start.replace(tzinfo=None)
    ended = typed(
        "sync", ships.id, "--from", f"{first:%FT%H:%M}", "--to", f"{first + HOUR:%FT%H:%M}"
    )
    assert ended.exit_code == 1
    assert "nothing has succeeded for longer than the 4 s of sync.giveUpAfter" in ended.stdout
    assert "answered 503: busy" in ended.output
    sent = [each.at for each in proxy.seen(operation="create_table", table="SyncLease")]
    assert 3 < sent[-1] - sent[0] < 6  # and no further try of the step after a minute
