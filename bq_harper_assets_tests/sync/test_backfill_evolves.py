"""A type changes in the middle of a backfill: all windows are synced, all rows accounted for."""

import pytest

from bq_harper_assets.ledger.records import CellState
from bq_harper_assets.validation.verdict import ProofStatus
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.temporary_project import HOUR, hours_ago, numbered_rows

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
BEYOND = 2**53 + 1  # what a number of Harper's cannot hold


@pytest.mark.promise("D4")
def test_a_type_that_changes_in_the_middle_of_ten_windows_stops_none_and_loses_no_row(
    sync: Sync, tables: SmallTables
) -> None:
    start = hours_ago(11)
    source = tables.make_from(
        f"SELECT *, CAST(number AS STRING) AS speed FROM ({numbered_rows(start, 40, 15)})"
    )
    contract = sync.contract(source, key=("number",), slices=1)
    cells = sync.cells(contract, start, start + 10 * HOUR)
    reports = [sync.run(contract, cells[:4])]
    tables.run(
        f"CREATE OR REPLACE TABLE {source.sql} AS SELECT * REPLACE"
        f" (IF(number = 30, {BEYOND}, CAST(speed AS INT64)) AS speed) FROM {source.sql}"
    )
    tables.run(f"UPDATE {source.sql} SET number = 115 WHERE number = 15")
    reports += [sync.run(contract, part) for part in (cells[3:7], cells[7:])]

    assert [report.schema_version for report in reports] == [1, 2, 2]
    done = [cell for report in reports for cell in report.cells]
    assert {each.cell for each in done} == {*cells}
    for each in done:
        result = each.result
        assert result.read == result.written + result.unchanged + result.quarantined == 4
    totals = {
        name: sum(getattr(each.result, name) for each in done)
        for name in ("read", "written", "unchanged", "quarantined", "deleted")
    }
    assert totals == {"read": 44, "written": 43, "unchanged": 0, "quarantined": 1, "deleted": 1}
    ledger = sync.stores.ledger
    table = ledger.find_route(contract.id)
    assert table
    states = [record.state for record in ledger.cells(table, start, start + 10 * HOUR)]
    assert states == [CellState.SYNCED] * 10
    [refused] = ledger.quarantined(table)
    assert str(BEYOND) in f"{refused.rejection}"
    held = {row["number"]: (row.get("speed"), row.get("speed_v2")) for row in sync.rows(contract)}
    assert sorted(held) == [*range(15), *range(16, 30), *range(31, 40), 115]
    for number, values in held.items():
        if number < 12:
            assert values == (f"{number}", None)
        elif number < 15:
            assert values == (f"{number}", number)  # synced before and after
        else:
            assert values == (None, 15 if number == 115 else number)
    proofs = sync.prover(contract).prove(cells)
    assert [each.status for each in proofs] == [ProofStatus.PROVED] * 10
