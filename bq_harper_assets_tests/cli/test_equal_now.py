"""Is it equal now? `bqh verify` answers it, and `bqh sync --changed` does what it says is due."""

from datetime import datetime

import pytest

from bq_harper_assets.cli.runs.proof_runs import NothingSynced
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets_tests.cli.typed import told, typed, typed_well
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    HOUR,
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


def insert(tables: SmallTables, source: TableRef, ts: str, number: int) -> None:
    tables.run(f"INSERT INTO {source.sql} (ts, number) VALUES ({ts}, {number})")


def at(moment: datetime) -> str:
    return f"TIMESTAMP '{moment:%F %T}+00'"


def test_what_changed_in_bigquery_since_is_named_and_synced_by_one_command(
    project: TemporaryProject, tables: SmallTables
) -> None:
    start = hours_ago(6)
    source = tables.make_from(numbered_rows(start, rows=100))  # five windows of twenty
    contract = table(source, start, key=["number"], live=False)
    [ships] = project.declare(contract).tables
    name, keys = ships.id, [f"{start + n * HOUR:%FT%H:%M}" for n in range(6)]
    for command in (["verify", name], ["repair", name], ["verify", name, "--from", keys[1]]):
        early = typed(*command)
        assert isinstance(early.exception, NothingSynced)
        assert (early.exception.exit_code, early.output) == (2, "")
        assert str(early.exception).startswith(f"nothing of {name} is synced ")
        assert str(early.exception).endswith(f"Next: bqh sync {name}")
    typed_well("sync", name, "--to", keys[4])
    tables.run(f"UPDATE {source.sql} SET number = 1005 WHERE number = 5")
    tables.run(f"DELETE FROM {source.sql} WHERE number IN (45, 46)")

    changed = typed_well("verify", name, code=5)
    assert f"{name} is not equal to BigQuery as of " in changed
    equal = "4 are equal (4 proved by stored hash, --deep compares all values)"
    assert f" UTC in 4 of 8 cells; {equal}\n" in changed
    then = f"type: bqh sync {name} --changed"
    since = f"  changed in BigQuery since: 2 windows, {keys[0]}, {keys[2]}; {then}\n"
    assert since in changed
    never = changed.partition("  not looked at: ")[2]
    assert "cells that were never synced" in never
    assert keys[4] in never
    assert "healthy" not in changed
    unsynced = typed_well("verify", name, "--from", keys[3], code=4)
    assert "cells that were never synced" in unsynced
    programs = told("verify", name, "--deep", code=5)
    assert programs["verdict"] == "changed_since"
    assert programs["changed_since"] == [keys[0], keys[2]]
    assert programs["equal_cells"] == 4
    part = typed_well("verify", name, "--from", keys[1], "--to", keys[2])
    assert "in 2 cells (2 proved by stored hash, --deep compares all values)\n" in part
    assert "  not looked at: 6 synced cells outside the range\n" in part

    repaired = typed_well("repair", name, code=5)
    assert repaired.endswith(
        f"nothing was repaired: no cell of {name} differs from what BigQuery had, and BigQuery has "
        f"changed since in 2 windows, {keys[0]}, {keys[2]}; to bring these up to date, {then}\n"
    )

    synced = typed_well("sync", name, "--changed", "--to", keys[4])
    assert f"4 of 8 cells of {name} are due:\n" in synced
    assert f"  4 changed in BigQuery since their sync: 2 windows, {keys[0]}, {keys[2]}\n" in synced
    [figures] = [line.split() for line in synced.splitlines() if line.startswith(f"{name}  ")]
    assert figures[1:-1] == ["4", "38", "1", "37", "3", "0"]
    nothing = typed_well("sync", name, "--changed", "--to", keys[4])
    assert f"nothing of {name} is due: 8 of its 8 cells are as BigQuery has them at " in nothing
    assert "cells done" not in nothing
    assert "in 8 cells (8 proved by stored hash" in typed_well("verify", name, "--to", keys[4])

    missing = told("sync", name, "--changed")  # the fifth window, and perhaps one closed since
    assert keys[4] in {key.partition("|")[0] for key in missing["partitions"]}
    assert not {key.partition("|")[0] for key in missing["partitions"]} & set(keys[:4])
    assert "never synced" not in typed_well("verify", name)


def test_rows_that_are_too_young_or_have_no_time_are_told_and_not_left_to_be_missed(
    project: TemporaryProject, tables: SmallTables
) -> None:
    start = hours_ago(2)
    source = tables.make_from(numbered_rows(start, rows=20))
    [ships] = project.declare(table(source, start, key=["number"], slices=1, safetyLag="5m")).tables
    for number in range(3):
        insert(tables, source, "CURRENT_TIMESTAMP()", 100 + number)
    insert(tables, source, "NULL", 200)
    insert(tables, source, at(start - 48 * HOUR), 300)

    synced = typed_well("sync", ships.id)
    assert "3 rows are younger than safetyLag (5m) and come next\n" in synced
    without = "  not copied: 1 row without ts (as of "
    before = "  not copied: 1 row older than the first window (as of "
    assert without in synced
    shown = typed_well("status")
    assert without in shown
    assert before in shown
    assert "in the future" not in shown
    assert without in typed_well("verify", ships.id)

    nothing = typed_well("sync", ships.id, "--changed")
    assert f"nothing of {ships.id} is due" in nothing
    late = max(start, hours_ago(1))  # in a window that is synced, perhaps in the open one too
    insert(tables, source, at(late), 400)
    due = typed("sync", ships.id, "--changed")
    assert due.exit_code == 0, due.output
    assert f"1 window, {late:%FT%H:%M}" in due.stdout
    assert f"nothing of {ships.id} is due" in typed_well("sync", ships.id, "--changed")
