"""BigQuery that goes away while it is read: what is committed is stored, the rest comes later."""

from dataclasses import replace

import pytest

from bq_harper_assets.ledger.records import CellState
from bq_harper_assets.sync.errors import TurnFailed
from bq_harper_assets_tests.stores.cutting_proxy import cutting_proxy
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.stores.storage_proxy import storage_proxy
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
START, END = utc(2026, 1, 5), utc(2026, 1, 5, 2)
ROWS = 27_000  # more than a task writes at once
SELECT = (
    "SELECT TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL n * 200 MILLISECOND) AS ts, n,"
    " TO_HEX(SHA512(CAST(n AS STRING))) AS text"
    f" FROM UNNEST(GENERATE_ARRAY(0, {ROWS - 1})) AS n"
)
ALL, MOST, NONE = 10**9, 3_500_000, 0  # bytes after which a connection is cut


@pytest.mark.promise("H9", "E4")
def test_where_bigquery_goes_away_in_mid_read_no_cell_claims_rows_that_are_not_stored(
    sync: Sync, tables: SmallTables
) -> None:
    contract = sync.contract(tables.make_from(SELECT))
    cells = sync.cells(contract, START, END)
    bigquery = sync.stores.bigquery
    # The first connection is the driver's, which only opens the session.
    with cutting_proxy(str(bigquery.storage_endpoint), ALL, MOST, *[NONE] * 50) as proxy:
        fields = {"storage_endpoint": proxy.address, "max_retries": 1, "initial_retry_delay_ms": 10}
        known = bigquery.model_copy(update=fields)
        broken = replace(sync, stores=replace(sync.stores, bigquery=known))
        with pytest.raises(TurnFailed, match="BigQuery") as told:
            broken.run(contract, cells)
    assert told.value.report.is_transient
    arrived = len(sync.rows(contract))
    assert _claimed(sync, contract.id) <= arrived < ROWS

    report = sync.run(contract, cells)

    assert not [cell for cell in report.cells if cell.problem]
    assert sorted(row["n"] for row in sync.rows(contract)) == list(range(ROWS))
    assert _claimed(sync, contract.id) == ROWS


@pytest.mark.promise("H9", "E4")
@pytest.mark.parametrize("has_key", [True, False], ids=["keyed", "keyless with equal rows"])
def test_a_read_session_that_bigquery_loses_is_opened_again_at_the_same_instant(
    sync: Sync, tables: SmallTables, has_key: bool
) -> None:
    source = tables.make_from(SELECT)
    doubled = 0 if has_key else 7
    if doubled:
        tables.run(f"INSERT INTO {source.sql} SELECT * FROM {source.sql} WHERE n < {doubled}")
    contract = sync.contract(source, **({"key": ["n"]} if has_key else {}))
    bigquery = sync.stores.bigquery
    said: list[str] = []
    with storage_proxy(str(bigquery.storage_endpoint)) as proxy:
        known = bigquery.model_copy(update={"storage_endpoint": proxy.address})
        broken = replace(sync, stores=replace(sync.stores, bigquery=known))
        # A keyless table is read once before, for the numbers of its equal rows.
        proxy.lost_after, proxy.lost = 1, {0 if has_key else 1}

        def say(line: str) -> None:
            said.append(line)
            if "opens a new session" in line:  # what comes now belongs to a later instant
                tables.run(f"DELETE FROM {source.sql} WHERE n >= {ROWS // 2}")

        report = broken.run(contract, sync.cells(contract, START, END), say=say)
    assert not [cell for cell in report.cells if cell.problem]
    assert [line for line in said if "opens a new session at" in line]
    assert sum(cell.result.read for cell in report.cells) == ROWS + doubled
    held = sorted(row["n"] for row in sync.rows(contract))
    assert held == sorted([*range(ROWS), *range(doubled)])
    assert _claimed(sync, contract.id) == ROWS + doubled


def _claimed(sync: Sync, table_id: str) -> int:
    """The rows of all cells that the ledger calls synced."""
    table = sync.stores.ledger.find_route(table_id)
    assert table is not None
    cells = sync.stores.ledger.cells(table, START, END)
    done = [cell.commit for cell in cells if cell.state is CellState.SYNCED]
    return sum(commit.rows for commit in done if commit)
