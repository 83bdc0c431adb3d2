"""Each shape of a file becomes tables, with the defaults that they share."""

from datetime import timedelta

import pytest

from bq_harper_assets_tests.contract.conftest import Disk
from bq_harper_assets_tests.contract.test_project import DATA, load


@pytest.mark.promise("G10")
def test_the_single_table_form_becomes_one_table(disk: Disk) -> None:
    (table,) = load(disk, "single-table").tables
    assert (table.id, table.target_table) == ("default", "BigQueryData")
    assert (table.dataset, table.table) == ("your_dataset", "your_table")
    assert (table.timestamp_column, table.columns) == ("timestamp", ("*",))


@pytest.mark.promise("G10")
@pytest.mark.parametrize("place", ["", "  "], ids=["beside bigquery", "under bigquery"])
def test_the_single_table_form_keeps_everything_else_it_says(disk: Disk, place: str) -> None:
    text = (DATA / "single-table.yaml").read_text(encoding="utf-8")
    text += f"{place}sync:\n{place}  steadyBatchSize: 7\n{place}  startTimestamp: 2026-01-01\n"
    text = text.replace("  location: US\n", "  location: EU\n  window: 30m\n  key: row_id\n")
    (table,) = disk.tables(text).load().tables
    assert table.sync.steady_batch_size == 7
    assert table.sync.start_timestamp is not None
    assert table.sync.start_timestamp.isoformat() == "2026-01-01T00:00:00+00:00"
    assert (table.window, table.key) == (timedelta(minutes=30), ("row_id",))


def test_shared_sync_defaults_reach_every_table_and_give_way_to_its_own(disk: Disk) -> None:
    text = (DATA / "many-tables.yaml").read_text(encoding="utf-8")
    disk.write("config/more.yaml", (DATA / "selected-columns.yaml").read_text(encoding="utf-8"))
    project = disk.tables(
        f"{text}  sync:\n    pollInterval: 5000\n    steady_threshold: 120\n"
    ).load()
    assert {t.id: (t.sync.poll_interval, t.sync.steady_threshold) for t in project.tables} == {
        "orders": (30000, 120),
        "payments": (60000, 120),
        "large_table": (5000, 120),
    }


def test_shared_sync_defaults_that_are_wrong_are_told_once(disk: Disk) -> None:
    text = (DATA / "quick-start.yaml").read_text(encoding="utf-8")
    told = disk.tables(f"{text}sync:\n  pollInterval: 30\n").refusal()
    assert told.count("pollInterval") == 1
    assert "config/tables.yaml:29: sync.pollInterval = 30" in told


@pytest.mark.parametrize("value", ["5", "[a]", "text"])
def test_a_bigquery_block_that_is_none_is_told_once(value: str, disk: Disk) -> None:
    told = disk.tables(f"bigquery: {value}\n").refusal()
    assert told.startswith("1 problem ")
    assert f"bigquery = {value}" in told
    assert "must be a block of keys, such as projectId and tables" in told


def test_a_table_that_is_none_is_told_with_its_place(disk: Disk) -> None:
    told = disk.tables("tables:\n  - orders\n  - 5\n").refusal()
    assert told.startswith("2 problems ")
    for at, value in enumerate(("orders", "5")):
        assert f"tables[{at}] = {value}" in told
    assert told.count("must be a table with keys such as id, dataset and table") == 2


def test_a_single_table_keeps_the_id_and_target_that_it_names(disk: Disk) -> None:
    text = "bigquery: {dataset: shop, table: orders, timestampColumn: t"
    (bare,) = disk.tables(f"{text}}}\n").load().tables
    (named,) = disk.tables(f"{text}, id: sales, target_table: Sales}}\n").load().tables
    (half,) = disk.tables(f"{text}, id: sales}}\n").load().tables
    assert (named.id, named.target_table) == ("sales", "Sales")
    assert (half.id, half.target_table) == ("sales", bare.target_table)
    assert bare.id == "default"


def test_shared_defaults_do_not_hide_that_a_tables_own_sync_is_none(disk: Disk) -> None:
    table = "{id: a, dataset: d, table: t, timestampColumn: t, targetTable: A, sync: 5}"
    told = disk.tables(f"sync: {{pollInterval: 60000}}\ntables:\n  - {table}\n").refusal()
    assert told.startswith("1 problem ")
    assert "tables[0].sync = 5" in told
