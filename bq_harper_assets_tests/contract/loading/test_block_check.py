"""All that is wrong in a block of keys is told at once, and each thing once."""

import pytest

from bq_harper_assets_tests.contract.conftest import Disk
from bq_harper_assets_tests.contract.test_table import OneTable


@pytest.mark.promise("E1")
@pytest.mark.parametrize("key", ["id", "dataset", "table", "timestampColumn", "targetTable"])
def test_each_missing_key_is_named(key: str, disk: Disk) -> None:
    keys = {
        "id": "orders",
        "dataset": "shop",
        "table": "orders",
        "timestampColumn": "t",
        "targetTable": "O",
    }
    lines = "\n".join(f"    {name}: {value}" for name, value in keys.items() if name != key)
    told = disk.tables(f"tables:\n  -\n{lines}\n").refusal()
    assert told.startswith("1 problem ")
    assert f"tables[0].{key}" in told
    assert "is missing: " in told
    assert ("(table orders)" in told) == (key != "id")


def test_all_that_is_wrong_in_a_table_is_told_at_once(one_table: OneTable) -> None:
    told = one_table(
        "slices: 0\ncolumns: [total]\nlatest: true\nwindow: 2\nsync: {pollInterval: 1, x: 1}"
    ).refusal()
    assert told.startswith("6 problems ")
    for path in ("slices", "columns", "latest", "window", "sync.pollInterval", "sync.x"):
        assert f"tables[0].{path}" in told


def test_a_wrong_key_is_not_also_called_missing(one_table: OneTable) -> None:
    assert one_table("latest: true\nkey: {a: b}").refusal().startswith("1 problem ")
    assert one_table("customQuery: 5").refusal().startswith("1 problem ")


@pytest.mark.parametrize("key", ["id", "dataset", "timestampColumn", "targetTable"])
def test_a_wrong_key_that_is_required_is_not_also_called_missing(key: str, disk: Disk) -> None:
    keys = {"id": "o", "dataset": "shop", "table": "o", "timestampColumn": "t", "targetTable": "O"}
    lines = "\n".join(f"    {name}: {value}" for name, value in (keys | {key: "[1]"}).items())
    told = disk.tables(f"tables:\n  -\n{lines}\n").refusal()
    assert told.startswith("1 problem ")
    assert "is missing" not in told


def test_a_key_that_is_given_in_both_spellings_is_told(one_table: OneTable) -> None:
    told = one_table("safetyLag: 5m\nsafety_lag: 6m").refusal()
    assert told.startswith("1 problem ")
    assert "tables[0].safety_lag" in told
    assert "is given twice, as safetyLag and safety_lag: keep one" in told


@pytest.mark.parametrize("value", ["5", "[a]"])
def test_a_block_that_is_none_is_told(value: str, one_table: OneTable) -> None:
    told = one_table(f"sync: {value}\nschemaOverrides: {value}").refusal()
    assert told.count("must be a block of keys, each on its own line below it") == 2


def test_the_keys_of_each_column_in_a_block_are_looked_at(one_table: OneTable) -> None:
    told = one_table("schemaOverrides:\n  city: {indxed: true, type: number}").refusal()
    assert "schemaOverrides.city.indxed (table orders)" in told
    assert "is not a key; did you mean indexed?" in told
    good = one_table("schemaOverrides:\n  city: {indexed: true}").load().tables[0]
    assert good.schema_overrides["city"].indexed is True
