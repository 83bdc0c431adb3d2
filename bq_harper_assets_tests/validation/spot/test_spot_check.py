"""The four words of the spot check, and the rows it names, after real syncs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.position import InstantPosition
from bq_harper_assets.ledger.records import Mark
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.validation.spot.spot_check import check_spot
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets.validation.verdict import Severity, SpotStatus, Verdict
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.validation.conftest import MINUTE

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
NOON = utc(2026, 1, 5, 12)
ONE = NOON + 60 * MINUTE
TWO = ONE + 60 * MINUTE
FROM_NOON = {"sync": {"start_timestamp": NOON.isoformat()}}
ALL = 48  # instants in two hours: with a row every five minutes, each is picked
EVERY_FIVE_MINUTES = (
    f"SELECT n AS number, TIMESTAMP_ADD(TIMESTAMP '{NOON:%F %T}+00', INTERVAL n * 5 MINUTE) AS ts,"
    " CONCAT('name ', CAST(n AS STRING)) AS name FROM UNNEST(GENERATE_ARRAY(0, 23)) AS n"
)


def land_two_hours(
    sync: Sync, source: TableRef, **declared: Any
) -> tuple[TableContract, list[dict[str, Any]]]:
    """Two windows, synced, and their rows in Harper by number."""
    contract = sync.contract(source, **(FROM_NOON | declared))
    sync.run(contract, sync.cells(contract, NOON, TWO))
    return contract, sorted(sync.rows(contract), key=lambda row: int(row["number"]))


def spot(
    sync: Sync,
    tables: SmallTables,
    contract: TableContract,
    start: datetime = NOON,
    end: datetime = TWO,
    slices: Sequence[int] = (0, 1),
    **keys: Any,
) -> Verdict:
    """With a seed, so that a failure can be repeated."""
    subject = Subject(contract, tables.queries, sync.harper, sync.stores.ledger)
    cells = [cell for cell in sync.cells(contract, start, end) if cell.slice in slices]
    return check_spot(subject, cells, **({"size": ALL, "seed": 7} | keys))


def named(verdict: Verdict) -> dict[Any, tuple[str, dict[str, Any]]]:
    """Kind and columns by id."""
    return {row.id: (row.kind.value, dict(row.columns)) for row in verdict.rows}


@pytest.mark.promise("M3")
@pytest.mark.promise("M12")
def test_a_missing_a_changed_and_a_phantom_row_are_named_and_nothing_else(
    sync: Sync, tables: SmallTables
) -> None:
    contract, rows = land_two_hours(sync, tables.make_from(EVERY_FIVE_MINUTES))
    clean = spot(sync, tables, contract, size=10)
    assert (clean.status, clean.passed) == (SpotStatus.HEALTHY, True)
    assert 10 <= clean.metadata["rows_from_bigquery"] <= 12  # three of each cell
    assert 7 <= clean.metadata["rows_from_harper"] <= 12
    assert clean.metadata["seed"] == 7

    missing, changed, phantom = rows[3], rows[9], rows[15] | {"id": "PHANTOM"}
    phantom["ts"] = "2026-01-05T13:19:59.000000Z"  # a time of its own
    sync.harper.delete(contract.target.table, [missing["id"]])
    sync.harper.upsert(contract.target.table, [changed | {"name": None}, phantom])
    verdict = spot(sync, tables, contract)
    assert (verdict.status, verdict.severity) == (SpotStatus.ISSUES_FOUND, Severity.ERROR)
    assert named(verdict) == {
        missing["id"]: ("missing", {}),
        changed["id"]: ("changed", {"name": ("name 9", None)}),
        "PHANTOM": ("phantom", {}),
    }
    assert "name: 'name 9' -> None" in verdict.message
    first = spot(sync, tables, contract, start=NOON, end=ONE)
    assert set(named(first)) == {missing["id"], changed["id"]}

    sync.harper.upsert(contract.target.table, [missing, changed])
    sync.harper.delete(contract.target.table, ["PHANTOM"])
    assert spot(sync, tables, contract).passed


def test_a_row_that_nobody_synced_is_a_phantom_whatever_its_time_says(
    sync: Sync, tables: SmallTables
) -> None:
    contract, rows = land_two_hours(sync, tables.make_from(EVERY_FIVE_MINUTES))
    odd = rows[3] | {"id": "ODD", "ts": "2026-01-05T12:31:00 oops"}
    sync.harper.upsert(contract.target.table, [odd])
    # One instant in each minute of each of the four cells: the row is met wherever chance falls.
    found = spot(sync, tables, contract, size=4 * 60)
    assert named(found) == {"ODD": ("phantom", {})}


@pytest.mark.promise("M3")
def test_what_changed_in_bigquery_since_the_sync_is_no_difference(
    sync: Sync, tables: SmallTables
) -> None:
    source = tables.make_from(EVERY_FIVE_MINUTES)
    contract, rows = land_two_hours(sync, source, key=["number"])
    tables.run(f"UPDATE {source.sql} SET name = 'new' WHERE number < 6")
    tables.run(f"DELETE FROM {source.sql} WHERE number BETWEEN 6 AND 11")
    tables.run(f"INSERT INTO {source.sql} SELECT number + 100, ts, name FROM {source.sql}")
    verdict = spot(sync, tables, contract)
    assert (verdict.status, verdict.metadata["read_at_commit"]) == (SpotStatus.HEALTHY, True)
    assert verdict.metadata["rows_from_harper"] == len(rows)

    # In Harper a row gets another time within its window, and another one comes from nowhere.
    moved = rows[2] | {"ts": "2026-01-05T12:14:59.000000Z"}
    nowhere = rows[4] | {"id": 77, "number": 77, "ts": "2026-01-05T12:24:59.000000Z"}
    sync.harper.upsert(contract.target.table, [moved, nowhere])
    assert named(spot(sync, tables, contract)) == {
        2: ("changed", {"ts": (rows[2]["ts"], moved["ts"])}),
        77: ("phantom", {}),
    }
    kept = contract.model_copy(update={"deletes": "keep"})
    verdict = spot(sync, tables, kept)
    assert set(named(verdict)) == {2}
    assert verdict.metadata["rows_kept"] > 0


def test_a_cell_that_waits_to_be_moved_is_left_out(sync: Sync, tables: SmallTables) -> None:
    contract, rows = land_two_hours(sync, tables.make_from(EVERY_FIVE_MINUTES), slices=1)
    sync.harper.delete(contract.target.table, [rows[3]["id"]])
    ledger = sync.stores.ledger
    table = ledger.find_route(contract.id)
    assert table is not None
    cell = ledger.cells(table, NOON, ONE)[0].cell
    leases = ledger.acquire(table, [0], "test", 3 * MINUTE)
    ledger.mark(leases, InstantPosition(ledger.now()), [Mark(cell, NOON, "a row moved away")])
    assert spot(sync, tables, contract).passed
    only = spot(sync, tables, contract, start=NOON, end=ONE)
    assert (only.status, only.passed, only.severity) == (
        SpotStatus.NO_DATA,
        False,
        Severity.WARN,
    )
