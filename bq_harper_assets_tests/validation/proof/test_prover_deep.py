"""The deep proof: a row has what the source has, and nothing else but what a sync puts there."""

import pytest

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.validation.proof.cell_proof import CellProof
from bq_harper_assets.validation.verdict import ProofStatus
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import DAY, ONE, Table
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


def nested(sync: Sync, tables: SmallTables) -> Table:
    """Ten rows with a STRUCT and an array of STRUCTs."""
    source = tables.make_from(
        "SELECT n AS number, CONCAT('name ', CAST(n AS STRING)) AS name,"
        " STRUCT(n AS a, 'x' AS b) AS inner_, [STRUCT(n AS a)] AS many,"
        " TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL n MINUTE) AS ts"
        " FROM UNNEST(GENERATE_ARRAY(0, 9)) AS n"
    )
    table = Table(
        sync=sync,
        tables=tables,
        source=source,
        contract=sync.contract(source, key=("number",), slices=1),
    )
    table.run(DAY, ONE)
    return table


def prove(table: Table, *, deep: bool = True) -> CellProof:
    sync = table.sync
    prover = sync.prover(table.contract)
    [proof] = prover.prove(sync.cells(table.contract, DAY, ONE), deep=deep)
    return proof


def test_members_and_attributes_that_nobody_synced_are_named_and_a_deep_sync_is_rid_of_them(
    sync: Sync, tables: SmallTables
) -> None:
    table = nested(sync, tables)
    target = table.contract.target.table
    assert prove(table).status is ProofStatus.PROVED
    sync.harper.upsert(
        target,
        [
            {"id": 1, "inner_": {"a": 1, "b": "x", "more": 7}},
            {"id": 2, "many": [{"a": 2, "more": 7}]},
            {"id": 3, "extra": "somebody's", "other": None},
        ],
    )
    assert prove(table, deep=False).status is ProofStatus.PROVED  # it believes the stored hash
    found = {each.id: each.columns for each in prove(table).differences}
    assert found == {
        1: {"inner_": ({"a": 1, "b": "x"}, {"a": 1, "b": "x", "more": 7})},
        2: {"many": ([{"a": 2}], [{"a": 2, "more": 7}])},
        3: {"extra": (None, "somebody's")},
    }
    table.run(DAY, ONE)
    assert prove(table).status is ProofStatus.DIFFERS  # a plain sync leaves what is not its own
    table.run(DAY, ONE, deep=True)
    assert prove(table).status is ProofStatus.PROVED
    stored = {row["id"]: row for row in sync.harper.search_by_id(target, [1, 2, 3])}
    assert stored[1]["inner_"] == {"a": 1, "b": "x"}
    assert stored[2]["many"] == [{"a": 2}]
    assert stored[3]["extra"] is None
    others = sync.harper.search_by_id(target, [4])
    assert "extra" not in others[0]  # only rows that differ are written


def test_an_attribute_that_the_table_declares_is_its_owners(
    sync: Sync, tables: SmallTables
) -> None:
    table = nested(sync, tables)
    target = table.contract.target.table
    sync.harper.create_attribute(target, "note")
    sync.harper.upsert(target, [{"id": 3, "note": "of an application"}])
    assert prove(table).status is ProofStatus.PROVED


def test_what_an_older_schema_version_has_left_in_rows_is_no_difference(
    sync: Sync, tables: SmallTables
) -> None:
    table = nested(sync, tables)
    without = table.contract.model_dump() | {"columns": ("number", "inner_", "many", "ts")}
    table.contract = TableContract.model_validate(without)
    table.run(DAY, ONE)
    [row] = sync.harper.search_by_id(table.contract.target.table, [3])
    assert row["name"] == "name 3"
    assert prove(table).status is ProofStatus.PROVED
