"""Late, changed and deleted rows: the source changes, the sensor ticks, and Harper follows."""

from datetime import UTC, datetime, timedelta

import pytest
from dagster import DagsterRunStatus

from bq_harper_assets.cli.runs.asked_cells import cells_between
from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.partitions import RANGE_END, RANGE_START
from bq_harper_assets.defs.runs.launch import launch
from bq_harper_assets.defs.tables.revisit_sensor import BILLED, END, LOOK_ERROR, PHASE, REASON
from bq_harper_assets.instants import floor_to_window
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import CellState
from bq_harper_assets.stores.bigquery.source import BigQuerySource
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.plan.delete_guard import MOST_UNGUARDED_ROWS
from bq_harper_assets.sync.schema_sync.drift import look_for_drift
from bq_harper_assets_tests.defs.conftest import Dagster
from bq_harper_assets_tests.defs.ticking import Ticking, windows
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import HOUR, TemporaryProject, hours_ago, table

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def rows_from(start: datetime, rows: int, step: timedelta) -> str:
    return (
        f"SELECT n AS number, 'as it was' AS name, TIMESTAMP_ADD({at(start)}, "
        f"INTERVAL n * {int(step.total_seconds())} SECOND) AS ts"
        f" FROM UNNEST(GENERATE_ARRAY(0, {rows - 1})) AS n"
    )


def at(moment: datetime) -> str:
    return f"TIMESTAMP '{moment:%F %T}+00'"


def held(dagster: Dagster, contract: TableContract) -> dict[int, tuple[str, str]]:
    found = dagster.rows(contract)
    return {number: (row["ts"], row["name"]) for number, row in found.items()}


def wanted(tables: SmallTables, source: TableRef) -> dict[int, tuple[str, str]]:
    rows = tables.queries.run(f"SELECT * FROM {source.sql}", doing="comparing").rows
    return {row["number"]: (f"{row['ts']:%FT%T.%fZ}", row["name"]) for row in rows}


@pytest.mark.promise("H8", "N12")
def test_late_changed_moved_and_deleted_rows_are_found_and_put_right(
    dagster: Dagster, project: TemporaryProject, tables: SmallTables
) -> None:
    start = hours_ago(4)
    source = tables.make_from(rows_from(start, 80, timedelta(minutes=3)))
    [contract] = project.declare(table(source, start, live=False, key="number")).tables
    ticking = Ticking(dagster=dagster, contract=contract)

    [run] = ticking.settle()
    assert (run[REASON], run[PHASE], run[END]) == ("missing", "initial", "newest")
    first, last = f"{start:%FT%H:%M}", f"{start + 3 * HOUR:%FT%H:%M}"
    assert windows(run) == (first, last)
    assert held(dagster, contract) == wanted(tables, source)
    assert ticking.settle() == []
    shown = ticking.cursor
    looked_at = datetime.fromisoformat(shown["looked_at"])
    looked = f"from {first} to {start + 4 * HOUR:%FT%H:%M} are as BigQuery had them at"
    assert f"{looked} {looked_at:%F %T} UTC or since" in (ticking.skipped or "")
    assert f"or at once with: bqh sync {contract.id} --changed" in (ticking.skipped or "")
    # Which of them it is follows from the minute of the hour, by which the last window is over.
    by_phase = {"catchup": (1000, 24), "steady": (500, 8)}
    assert (shown["batch_size"], shown["windows_per_run"]) == by_phase[shown["phase"]]
    assert (shown["due"], shown["windows_compared"]) == ({}, 4)
    assert shown["next_poll"] < shown["next_look"]
    assert ticking.tick() == ()
    assert "next poll" in (ticking.skipped or "")

    end = start + 4 * HOUR
    tables.run(
        f"INSERT INTO {source.sql} (number, name, ts) VALUES"
        f" (101, 'a second late', {at(end - SECOND)}),"
        f" (102, 'five minutes late', {at(end - timedelta(minutes=5))}),"
        f" (103, 'two hours late', {at(end - 2 * HOUR - SECOND)})"
    )
    tables.run(f"UPDATE {source.sql} SET name = 'changed' WHERE number = 1")
    tables.run(f"UPDATE {source.sql} SET ts = {at(start + 2 * HOUR + SECOND)} WHERE number = 2")
    tables.run(f"DELETE FROM {source.sql} WHERE number = 79")
    assert ticking.later(is_time_to_look=False) == ()
    [run] = ticking.settle()
    assert (run[REASON], windows(run)) == ("source_changed", (first, last))
    assert run[BILLED] == "0"  # the emulator bills nothing
    assert held(dagster, contract) == wanted(tables, source)
    assert 79 not in held(dagster, contract)

    tables.run(
        f"INSERT INTO {source.sql} (number, name, ts) VALUES"
        f" (79, 'as it was', {at(start + 237 * timedelta(minutes=1))})"
    )
    [request] = ticking.later()
    assert windows(dict(request.tags)) == (last, last)
    [same] = ticking.later(is_time_to_look=False)
    assert (same.run_key, same.tags) == (request.run_key, request.tags)
    going_on = dagster.instance.create_run_for_job(
        ticking.definitions.resolve_job_def(f"sync_{contract.id}"),
        status=DagsterRunStatus.STARTED,
        tags=request.tags,
    )
    assert ticking.later() == ()
    assert "have not ended" in (ticking.skipped or "")
    dagster.instance.delete_run(going_on.run_id)
    assert ticking.run(request)
    assert held(dagster, contract) == wanted(tables, source)
    assert ticking.settle() == []


@pytest.mark.promise("H8", "N12")
def test_an_old_row_is_found_by_the_scrub_and_a_deleted_window_is_refused_once(
    dagster: Dagster, project: TemporaryProject, tables: SmallTables
) -> None:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    yesterday, start = today - DAY, today - 9 * DAY
    few = rows_from(start, 8, DAY)
    many = rows_from(yesterday, 1200, SECOND).replace("n AS number", "1000 + n AS number")
    source = tables.make_from(f"{few} UNION ALL {many}")
    kept = tables.make_from(f"SELECT * FROM {source.sql}")
    declared = table(source, start, live=False, window="1d", slices=1, scrub="1d", safetyLag="0s")
    [contract] = project.declare(declared).tables
    ticking = Ticking(dagster=dagster, contract=contract)
    [run] = ticking.settle()
    assert windows(run) == (f"{start:%FT%H:%M}", f"{yesterday:%FT%H:%M}")

    late = today - 8 * DAY + HOUR
    tables.run(f"INSERT INTO {source.sql} (number, name, ts) VALUES (9, 'late', {at(late)})")
    tables.run(f"DELETE FROM {source.sql} WHERE number >= 1000")
    [request] = ticking.later()
    assert windows(dict(request.tags)) == (f"{yesterday:%FT%H:%M}",) * 2
    assert not ticking.run(request, may_fail=True)
    assert refused(project, contract) == [f"{yesterday:%FT%H:%M}|s00"]
    assert len(dagster.rows(contract)) == 1208

    for _ in range(10):  # looks, each of which takes another part of the history
        if requests := ticking.later():
            break
        assert "refused by the delete guard" in (ticking.skipped or "")
    [request] = requests
    assert windows(dict(request.tags)) == (f"{late:%FT00:00}",) * 2
    assert ticking.run(request)
    assert dagster.rows(contract)[9]["name"] == "late"
    assert ticking.cursor["due"]["refused"] == 1

    tables.run(f"INSERT INTO {source.sql} SELECT * FROM {kept.sql} WHERE number >= 1000")
    tables.run(  # so that the window is not what it was before either
        f"INSERT INTO {source.sql} (number, name, ts) VALUES (10, 'late', {at(yesterday)})"
    )
    [run] = ticking.settle()
    assert (run[REASON], windows(run)) == ("source_changed", (f"{yesterday:%FT%H:%M}",) * 2)
    assert held(dagster, contract) == wanted(tables, source)
    assert refused(project, contract) == []

    # A source that cannot be looked at keeps no window waiting that is missing, nor other tables.
    tables.run(f"DROP TABLE {source.sql}")
    assert ticking.later() == ()
    assert source.table in (ticking.skipped or "")
    assert source.table in ticking.cursor["look_error"]
    scrubbed_to = ticking.cursor["scrubbed_to"]
    longer = declared | {"sync": {"startTimestamp": f"{start - DAY:%FT%TZ}"}}
    other = table(kept, start, live=False, window="1d", slices=1)
    [first, second] = project.declare(longer, other).tables
    ticking = Ticking(dagster=dagster, contract=first, cursor=ticking.cursor)
    [request] = ticking.later()
    assert (request.tags[REASON], windows(dict(request.tags))) == (
        "missing",
        (f"{start - DAY:%FT%H:%M}",) * 2,
    )
    assert source.table in request.tags[LOOK_ERROR]
    assert ticking.cursor["scrubbed_to"] == scrubbed_to
    [request] = Ticking(dagster=dagster, contract=second).tick()
    assert request.tags[REASON] == "missing"
    assert LOOK_ERROR not in request.tags

    tables.run(f"CREATE TABLE {source.sql} AS SELECT * FROM {kept.sql}")
    [request] = ticking.later(is_time_to_look=False)
    assert LOOK_ERROR in request.tags
    ticking.later()
    assert ticking.cursor["look_error"] == ""


@pytest.mark.promise("N12")
def test_an_emptied_table_of_small_windows_is_refused_though_each_run_takes_only_a_few(
    dagster: Dagster, project: TemporaryProject, tables: SmallTables
) -> None:
    start = floor_to_window(datetime.now(UTC) - 62 * MINUTE, 5 * MINUTE)
    source = tables.make_from(rows_from(start, 1_200, 3 * SECOND))
    declared = table(source, start, live=False, window="5m", slices=1, safetyLag="0s")
    [contract] = project.declare(declared).tables
    ticking = Ticking(dagster=dagster, contract=contract)
    ticking.settle()
    assert len(dagster.rows(contract)) == 1_200 > MOST_UNGUARDED_ROWS

    tables.run(f"DELETE FROM {source.sql} WHERE TRUE")
    requests, ended = ticking.later(), []
    while requests:
        ended += [ticking.run(request, may_fail=True) for request in requests]
        assert len(ended) < 10
        requests = ticking.later()
    assert {True, False} == set(ended)
    left = len(dagster.rows(contract))
    assert 1_200 - MOST_UNGUARDED_ROWS <= left < 1_200
    assert len(refused(project, contract)) == left // 100
    assert "refused by the delete guard" in (ticking.skipped or "")
    with open_ledger(load_project(project.root).ledger.url) as ledger:
        known = ledger.find_route(contract.id)
        assert known is not None
        why = next(filter(None, (batch.error for batch in ledger.history(known))))
    assert f"with the {1_200 - left} rows that earlier runs took out since" in why
    assert "--allow-deletes" in why

    emptied = cells_between(contract, start, None, None, None)[:12]
    allowed = launch(ticking.definitions, dagster.instance, contract, emptied, allow_deletes=True)
    assert (allowed.error, dagster.rows(contract)) == (None, {})


@pytest.mark.promise("H8")
def test_a_run_that_fails_before_it_plans_does_not_keep_the_backlog_waiting(
    dagster: Dagster, project: TemporaryProject, tables: SmallTables
) -> None:
    start = hours_ago(388)
    source = tables.make_from(rows_from(start, 10, HOUR))
    [contract] = project.declare(table(source, start, live=False)).tables
    ticking = Ticking(dagster=dagster, contract=contract)
    job = ticking.definitions.resolve_job_def(f"sync_{contract.id}")

    other = f"{start + 7 * MINUTE:%FT%H:%M}|s00"  # when windows had another length
    before = {RANGE_START: other, RANGE_END: other}
    dagster.instance.create_run_for_job(job, status=DagsterRunStatus.FAILURE, tags=before)

    def oldest(status: DagsterRunStatus) -> float:
        """Where the backlog begins, whose run then ends in that state; in hours."""
        [request] = [each for each in ticking.later() if each.tags[END] == "oldest"]
        dagster.instance.create_run_for_job(job, status=status, tags=request.tags)
        first = datetime.fromisoformat(f"{windows(dict(request.tags))[0]}Z")
        return (first - start) / HOUR

    assert oldest(DagsterRunStatus.FAILURE) == 0
    assert oldest(DagsterRunStatus.FAILURE) == 96
    assert oldest(DagsterRunStatus.FAILURE) == 192
    assert oldest(DagsterRunStatus.FAILURE) == 288
    assert oldest(DagsterRunStatus.SUCCESS) == 0  # nothing else is left
    assert oldest(DagsterRunStatus.FAILURE) == 0  # and still due: the last run counts


@pytest.mark.promise("D1")
def test_a_new_column_is_filled_in_old_windows_that_hold_values_for_it_and_in_no_others(
    dagster: Dagster, project: TemporaryProject, tables: SmallTables
) -> None:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    start = today - 9 * DAY
    source = tables.make_from(rows_from(start, 8, DAY))
    declared = table(
        source, start, live=False, window="1d", slices=1, scrub="365d", key="number", backfill=True
    )
    [contract] = project.declare(declared).tables
    ticking = Ticking(dagster=dagster, contract=contract)
    ticking.settle()
    ticking.later()

    tables.run(
        f"CREATE OR REPLACE TABLE {source.sql} AS"
        f" SELECT *, IF(number IN (2, 3), 'Kiel', NULL) AS port FROM {source.sql}"
    )
    with open_ledger(load_project(project.root).ledger.url) as ledger:
        assert look_for_drift(
            ledger, BigQuerySource(tables.queries, harper_plan), contract, "a test"
        ).changes
    [run] = ticking.settle()

    assert (run[REASON], windows(run)) == (
        "source_changed",
        (f"{start + 2 * DAY:%FT%H:%M}", f"{start + 3 * DAY:%FT%H:%M}"),
    )
    rows = dagster.rows(contract)
    assert {n for n, row in rows.items() if row.get("port") == "Kiel"} == {2, 3}
    assert ticking.cursor["filled_version"] == 2
    assert ticking.settle() == []


def refused(project: TemporaryProject, contract: TableContract) -> list[str]:
    with open_ledger(load_project(project.root).ledger.url) as ledger:
        known = ledger.find_route(contract.id)
        assert known is not None
        cells = ledger.cells(known, datetime(2000, 1, 1, tzinfo=UTC), datetime.now(UTC))
        return [str(each.cell) for each in cells if each.state is CellState.REFUSED]
