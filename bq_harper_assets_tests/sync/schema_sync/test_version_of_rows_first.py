"""A keyless table's ids are made of the columns of its first rows, not of its first try."""

from dataclasses import replace

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.schema.errors import SchemaRefused
from bq_harper_assets.sync.errors import TurnFailed
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import DAY, ONE, ROWS
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


def test_a_first_sync_that_wrote_no_row_leaves_the_ids_free(
    sync: Sync, tables: SmallTables, harper_connection: HarperConnection
) -> None:
    source = tables.make_from(ROWS.format(last=3_599, step=600))
    contract = sync.contract(source, slices=1)
    cells = sync.cells(contract, DAY, ONE)
    with FaultProxy(harper_connection.url) as proxy:
        proxy.on(Answer(403), operation="upsert", table=contract.target.table, times=99)
        harper = harper_connection.model_copy(update={"url": proxy.url})
        spoilt = replace(sync, stores=replace(sync.stores, harper=harper))
        with pytest.raises(TurnFailed):
            spoilt.run(contract, cells)
    table = sync.stores.ledger.find_route(contract.id)
    assert table is not None
    leases = sync.stores.ledger.leases(table)
    assert {lease.is_live for lease in leases} == {False}
    fewer = contract.model_copy(update={"columns": ("number", "ts")})
    report = sync.run(fewer, cells)
    assert [cell.result.written for cell in report.cells] == [6]
    again = sync.run(fewer, cells)
    assert [(cell.result.unchanged, cell.result.written) for cell in again.cells] == [(6, 0)]
    one = contract.model_copy(update={"columns": ("ts",)})
    with pytest.raises(SchemaRefused, match="told apart by"):  # now they are fixed
        sync.run(one, cells)
