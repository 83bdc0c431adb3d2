"""Rules across tables hold over all files and shapes."""

import pytest

from bq_harper_assets_tests.contract.conftest import Disk

SINGLE = "bigquery: {dataset: shop, table: orders, timestampColumn: t}"
REASONS = (
    "ids collide",
    "cannot both be validated",
    "confuse their checkpoints",
    "mix their fields",
)


def table(name: str, target: str, source: str = "", more: str = "") -> str:
    source = source or name
    return (
        f"  - {{id: {name}, dataset: shop, table: {source}, timestampColumn: t, "
        f"targetTable: {target}{more}}}\n"
    )


@pytest.mark.promise("G6")
@pytest.mark.parametrize("target", ["Orders", "orders", "ORDERS"])
def test_a_target_has_one_source_with_the_four_reasons(target: str, disk: Disk) -> None:
    disk.write("config/a.yaml", "tables:\n" + table("orders", "Orders"))
    told = disk.tables("tables:\n" + table("payments", target)).refusal()
    assert told.startswith("1 problem ")
    assert "config/tables.yaml:2: tables[0].targetTable" in told
    assert "the target of table orders (config/a.yaml:2)" in told
    assert all(reason in told for reason in REASONS)


@pytest.mark.promise("G6")
def test_two_single_tables_share_no_target_either(disk: Disk) -> None:
    disk.write("config/a.yaml", SINGLE)
    told = disk.tables(SINGLE.replace("orders", "payments")).refusal()
    assert "is already the target of table default (config/a.yaml:1)" in told


@pytest.mark.promise("G6")
def test_a_source_has_one_target_but_a_query_may_read_it_again(disk: Disk) -> None:
    first = "tables:\n" + table("orders", "Orders")
    told = disk.tables(first + table("copies", "Copies", "orders")).refusal()
    assert "read, billed and proved twice" in told
    query = ", customQuery: SELECT * FROM shop.orders"
    assert len(disk.tables(first + table("copies", "Copies", "orders", query)).load().tables) == 2


@pytest.mark.promise("G2")
@pytest.mark.promise("E1")
def test_a_clash_is_told_even_if_a_table_is_wrong_elsewhere(disk: Disk) -> None:
    text = "tables:\n" + table("orders", "Orders", more=", slices: 0") + table("Orders", "orders")
    told = disk.tables(text).refusal()
    assert told.startswith("3 problems ")
    for path in ("tables[0].slices", "tables[1].id", "tables[1].targetTable"):
        assert path in told


@pytest.mark.parametrize("given", ["dataset: shop", "table: orders"])
def test_half_of_a_source_is_no_source_that_two_tables_could_share(given: str, disk: Disk) -> None:
    tables = (f"  - {{id: {n}, {given}, timestampColumn: t, targetTable: {n}}}\n" for n in "ab")
    told = disk.tables("tables:\n" + "".join(tables)).refusal()
    assert told.startswith("2 problems ")
    assert told.count("is missing") == 2
