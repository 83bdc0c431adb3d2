"""Late, changed and deleted rows: the source changes, the sensor ticks, and Harper follows."""

from datetime import UTC, datetime, timedelta

import pytest
from dagster import DagsterRunStatus

from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.sensors import BILLED, END, PHASE, REASON
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import CellState
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets_tests.defs.conftest import Dagster
from bq_harper_assets_tests.defs.ticking import Ticking, windows
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import HOUR, TemporaryProject, hours_ago, table

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)


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
    ticking = Ticking(dagster, contract)

    [run] = ticking.settle()
    assert (run[REASON], run[PHASE], run[END]) == ("missing", "initial", "newest")
    first, last = f"{start:%FT%H:%M}", f"{start + 3 * HOUR:%FT%H:%M}"
    assert windows(run) == (first, last)
    assert held(dagster, contract) == wanted(tables, source)
    assert ticking.settle() == []
    assert "all closed windows" in (ticking.skipped or "")
    shown = ticking.cursor
    assert (shown["batch_size"], shown["windows_per_run"]) in ((1000, 24), (500, 8))
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
    ticking = Ticking(dagster, contract)
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
    [run] = ticking.settle()
    assert (run[REASON], windows(run)) == ("source_changed", (f"{yesterday:%FT%H:%M}",) * 2)
    assert held(dagster, contract) == wanted(tables, source)
    assert refused(project, contract) == []

    # A table whose source is gone has its error in its own tick; others have their own sensors.
    tables.run(f"DROP TABLE {source.sql}")
    other = table(kept, start, live=False, window="1d", slices=1)
    [_, second] = project.declare(declared, other).tables
    with pytest.raises(BqhError, match=source.table):
        Ticking(dagster, contract).tick()
    [request] = Ticking(dagster, second).tick()
    assert request.tags[REASON] == "missing"


def refused(project: TemporaryProject, contract: TableContract) -> list[str]:
    with open_ledger(load_project(project.root).ledger.url) as ledger:
        known = ledger.find_table(contract.id)
        assert known is not None
        cells = ledger.cells(known, datetime(2000, 1, 1, tzinfo=UTC), datetime.now(UTC))
        return [str(each.cell) for each in cells if each.state is CellState.REFUSED]
