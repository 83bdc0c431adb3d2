"""Rows that Harper would lose, answers that are no rows, and times that are none."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.stores.harper.answers import Attribute
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.stores.harper.errors import HarperRowBroken
from bq_harper_assets.sync.errors import NotCompared
from bq_harper_assets.validation.verdict import ProofStatus
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import DAY, KEYED, ONE, ROWS, Table, made, total
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
LOST = "x" * 70 + "\1"
BROKEN = '[{"id": 1, "_hash": "0000000000000"}, {"error": "RangeError"}]'
NAMELESS = '[{"id": 1, "_hash": "0000000000000"}, {"_hash": "0000000000000"}]'


@pytest.fixture
def proxy(harper_connection: HarperConnection) -> Iterator[FaultProxy]:
    with FaultProxy(harper_connection.url) as proxy:
        yield proxy


def keyed_by_text(sync: Sync, tables: SmallTables) -> Table:
    """Ten rows; the key of number 3 is one that Harper's indexes lose, that of 4 is too long."""
    source = tables.make_from(
        "SELECT CASE n WHEN 3 THEN CONCAT(REPEAT('x', 70), CODE_POINTS_TO_STRING([1]))"
        " WHEN 4 THEN REPEAT('y', 2000)"
        " ELSE CAST(n AS STRING) END AS k, n AS number, CONCAT('name ', CAST(n AS STRING)) AS name,"
        " TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL n MINUTE) AS ts"
        " FROM UNNEST(GENERATE_ARRAY(0, 9)) AS n"
    )
    return Table(
        sync=sync, tables=tables, source=source, contract=sync.contract(source, key=("k",))
    )


def prove(table: Table, *, deep: bool = False) -> set[ProofStatus]:
    sync = table.sync
    prover = sync.prover(table.contract)
    cells = sync.cells(table.contract, DAY, ONE)
    return {proof.status for proof in prover.prove(cells, deep=deep)}


@pytest.mark.promise("B8")
def test_a_key_that_harper_would_lose_is_quarantined_under_an_id_that_can_be_typed(
    sync: Sync, tables: SmallTables
) -> None:
    table = keyed_by_text(sync, tables)
    report = table.run(DAY, ONE)
    assert (total(report, "written"), total(report, "quarantined")) == (8, 2)
    # As an earlier release has left it: found by its id, and by no window.
    target, row = table.contract.target.table, sync.rows(table.contract)[0]
    sync.harper.upsert(target, [{**row, "id": LOST, "k": LOST}])
    table.run(DAY, ONE)
    assert sync.harper.search_by_id(target, [LOST]) == []
    assert prove(table) == prove(table, deep=True) == {ProofStatus.PROVED}
    known = sync.stores.ledger.find_route(table.contract.id)
    assert known is not None
    lost, too_long = sorted(
        (each.rejection for each in sync.stores.ledger.quarantined(known)),
        key=lambda rejection: rejection.reason,
    )
    assert "64 or more characters" in lost.reason
    assert "longer than 1978 bytes" in too_long.reason
    assert lost.row_id != too_long.row_id
    for each in (lost, too_long):
        assert re.fullmatch("no-id:[0-9A-Z]{13}", each.row_id or "")


@pytest.mark.parametrize("answer", [BROKEN, NAMELESS], ids=["an error", "no id"])
def test_an_answer_whose_rows_have_no_id_fails_the_cell_with_the_place_of_the_row(
    sync: Sync, tables: SmallTables, proxy: FaultProxy, answer: str
) -> None:
    table = made(sync, tables, **KEYED)
    harper = sync.stores.harper.model_copy(update={"url": proxy.url})
    spoilt = replace(sync, stores=replace(sync.stores, harper=harper))
    proxy.on(
        Answer(200, answer),
        operation="search_by_conditions",
        table=table.contract.target.table,
        times=100,
    )
    place = "cell 2026-01-05T00:00:00.000000Z to 2026-01-05T01:00:00.000000Z failed: .* in place 2 "
    with pytest.raises(NotCompared, match=place):
        spoilt.run(table.contract, sync.cells(table.contract, DAY, ONE))
    assert table.held == table.wanted


def test_an_error_in_the_place_of_a_row_is_no_row_to_any_search(
    proxy: FaultProxy, harper_connection: HarperConnection
) -> None:
    through = harper_connection.model_copy(update={"url": proxy.url})
    proxy.on(Answer(200, BROKEN), operation="search_by_conditions", times=2)
    with HarperClient(through) as client:
        within = Condition("ts", "gelt", ["a", "b"])
        with pytest.raises(HarperRowBroken, match='"RangeError"} in place 2 of 2 rows'):
            client.search_by_conditions("Orders", [within], ("id",))
        # Unless a column of that name is all that was asked for.
        assert len(client.search_by_conditions("Orders", [within], ("error",))) == 2


@pytest.mark.parametrize("bent", ["garbage", 17, None, "2026-01-05"])
def test_a_stored_time_that_is_none_is_mended_by_the_next_sync_of_its_cell(
    sync: Sync, tables: SmallTables, bent: object
) -> None:
    source = tables.make_from(ROWS.format(last=10_799, step=600))
    table = Table(sync=sync, tables=tables, source=source, contract=sync.contract(source, **KEYED))
    target = table.contract.target.table
    # An untyped attribute takes anything; a typed one takes any text, and no number.
    names = ("number", "ts", "name", "_syncedAt", "_batch", "_hash")
    untyped = [Attribute(name=name, indexed=name == "ts") for name in names]
    sync.harper.create_table(target, "id", [Attribute(name="id", type="Long"), *untyped])
    table.run()
    table.run(DAY, ONE)  # at a time of its own, so that rows are looked for in other windows
    sync.harper.upsert(target, [{"id": 600, "ts": bent}])
    [row] = sync.harper.search_by_id(target, [600], ("ts",))
    assert row["ts"] == bent
    assert ProofStatus.DIFFERS in prove(table)
    table.run(DAY, ONE)
    assert table.held == table.wanted
    assert prove(table) == {ProofStatus.PROVED}
