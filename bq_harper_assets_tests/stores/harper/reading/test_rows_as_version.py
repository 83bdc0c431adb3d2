"""A column goes and comes back with values that Harper still has: what goes with them follows."""

import pytest

from bq_harper_assets.stores.bigquery.source import BigQuerySource
from bq_harper_assets.stores.harper.reading.rows_as_version import read_rows_as
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.schema_sync.requested_version import Deciding
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.evolving import OLD, OLDER, OPEN, Evolving, numbers

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
KEYED = {"key": ("number",)}
RESTORED = "UPDATE T SET crew = CONCAT('crew ', CAST(number AS STRING)) WHERE TRUE"


def _made(sync: Sync, tables: SmallTables) -> Evolving:
    columns = (
        "n AS load, STRUCT('east' AS quay) AS berth, CONCAT('crew ', CAST(n AS STRING)) AS crew"
    )
    return Evolving.made(sync, tables, columns, **KEYED)


def _assert_filled(table: Evolving) -> None:
    """Rows that were written without their crew, of a closed and of an open window."""
    filling = table.declared(backfill=True)
    assert OLDER in filling.look()
    report = filling.run(OLDER, OPEN)
    assert [cell.result.written for cell in report.cells] == [3, 3]
    filling.assert_proved(OLDER, OPEN)
    assert OLDER not in filling.look()
    rows = read_rows_as(table.sync.harper, table.sync.stores.ledger, table.contract)
    crews = {row["number"]: row["crew"] for row in rows}
    assert {n: crews[n] for n in numbers(OLDER, OPEN)} == {
        n: f"crew {n}" for n in numbers(OLDER, OPEN)
    }
    assert [cell.result.unchanged for cell in filling.run(OLDER).cells] == [3]


@pytest.mark.promise("D3", "D4")
def test_rows_rewritten_while_a_column_was_gone_are_of_the_version_in_which_it_is_back(
    sync: Sync, tables: SmallTables
) -> None:
    table = _made(sync, tables)
    table.drop("crew")
    table.change("UPDATE T SET load = load + 100 WHERE TRUE")
    table.run(OLDER, OPEN)
    table.add(crew="STRING")
    table.change(RESTORED)
    _assert_filled(table)


@pytest.mark.promise("D3", "D4")
def test_rows_rewritten_after_a_rollback_are_of_the_version_that_is_rolled_forward_to(
    sync: Sync, tables: SmallTables
) -> None:
    table = _made(sync, tables)
    table.remake("*, crew AS mate")
    table.remake("* REPLACE (STRUCT(berth.quay AS quay, number AS mole) AS berth)")
    assert table.drift().version == 2
    filling = table.declared(backfill=True)
    filling.run(OLDER, OLD, OPEN)
    deciding = Deciding(
        sync.stores.ledger, BigQuerySource(tables.queries, harper_plan), table.contract, "me"
    )
    back = deciding.roll_back(1, record=True)
    assert (back.version, [change.column for change in back.changes]) == (3, ["mate"])
    table.change("UPDATE T SET load = load + 100 WHERE number NOT BETWEEN 10 AND 19")
    table.run(OLDER, OPEN)
    table.assert_proved(OLDER, OLD, OPEN)
    table.assert_spot_is_healthy()
    assert deciding.roll_back(2, record=True).version == 4
    _assert_filled(table)
    filling.assert_proved(OLDER, OLD, OPEN)
    rows = read_rows_as(sync.harper, sync.stores.ledger, table.contract)
    days = numbers(OLDER, OLD, OPEN)
    told = {row["number"]: (row["mate"], row["berth"]["mole"]) for row in rows}
    assert {n: told[n] for n in days} == {n: (f"crew {n}", n) for n in days}


@pytest.mark.promise("D3")
def test_a_row_that_moved_while_a_column_was_gone_keeps_no_value_of_it_where_it_is_now(
    sync: Sync, tables: SmallTables
) -> None:
    table = _made(sync, tables)
    table.drop("crew")
    table.change("UPDATE T SET ts = TIMESTAMP_ADD(ts, INTERVAL 1 DAY) WHERE number = 1")
    table.run(OLDER)
    table.add(crew="STRING")
    table.run(OLD)
    crews = table.values("crew")
    assert {n: crews[n] for n in (1, *numbers(OLD))} == dict.fromkeys((1, *numbers(OLD)), (None,))
    table.assert_proved(OLD)
