"""The four words of the spot check, and the rows it names, after real syncs."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.records import Mark
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.breaker import Breakers
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.retry import RetryPolicy
from bq_harper_assets.validation.spot import source_sample
from bq_harper_assets.validation.spot import spot_check as spot_module
from bq_harper_assets.validation.spot.spot_check import check_spot
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets.validation.verdict import Severity, SpotStatus, Verdict
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.side_by_side import land, quarantined
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
    sync.harper.delete(contract.target_table, [missing["id"]])
    sync.harper.upsert(contract.target_table, [changed | {"name": None}, phantom])
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

    sync.harper.upsert(contract.target_table, [missing, changed])
    sync.harper.delete(contract.target_table, ["PHANTOM"])
    assert spot(sync, tables, contract).passed


def test_without_cells_rows_of_the_whole_table_are_picked(sync: Sync, tables: SmallTables) -> None:
    contract, rows = land_two_hours(sync, tables.make_from(EVERY_FIVE_MINUTES))
    subject = Subject(contract, tables.queries, sync.harper, sync.stores.ledger)
    found = check_spot(subject, size=3, seed=7)
    assert (found.metadata["rows_from_bigquery"], found.passed) == (3, True)
    assert found.metadata["rows_from_harper"] == 3
    sync.harper.delete(contract.target_table, [row["id"] for row in rows])
    assert len(check_spot(subject, size=3, seed=7).rows) == 3


def test_many_rows_of_one_time_keep_no_other_window_from_being_looked_at(
    sync: Sync, tables: SmallTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tables.make_from(
        f"SELECT n AS number, TIMESTAMP_ADD(TIMESTAMP '{NOON:%F %T}+00', INTERVAL DIV(n, 30) HOUR)"
        " AS ts FROM UNNEST(GENERATE_ARRAY(0, 149)) AS n"
    )
    contract = sync.contract(source, **FROM_NOON)
    end = NOON + 300 * MINUTE
    sync.run(contract, sync.cells(contract, NOON, end))
    # Of a hundred thousand each, it would be the same; here windows have sixty rows at most.
    monkeypatch.setattr(source_sample, "MOST_SAMPLED_ROWS", 40)
    found = spot(sync, tables, contract, end=end, size=150)
    assert found.status is SpotStatus.HEALTHY
    assert found.metadata["rows_from_bigquery"] == 150
    assert found.metadata["crowded_times_left_out"] == 0
    monkeypatch.setattr(source_sample, "MOST_SAMPLED_ROWS", 20)
    found = spot(sync, tables, contract, end=end, size=150)
    assert not found.passed
    assert found.metadata["crowded_times_left_out"] == 5
    assert "rows share are left out" in found.message


def test_a_row_that_nobody_synced_is_a_phantom_whatever_its_time_says(
    sync: Sync, tables: SmallTables
) -> None:
    contract, rows = land_two_hours(sync, tables.make_from(EVERY_FIVE_MINUTES))
    odd = rows[3] | {"id": "ODD", "ts": "2026-01-05T12:31:00 oops"}
    sync.harper.upsert(contract.target_table, [odd])
    # One instant in each minute of each of the four cells: the row is met wherever chance falls.
    found = spot(sync, tables, contract, size=4 * 60)
    assert named(found) == {"ODD": ("phantom", {})}


def test_rows_that_a_run_takes_while_they_are_looked_at_are_not_called_the_same(
    sync: Sync, tables: SmallTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract, rows = land_two_hours(sync, tables.make_from(EVERY_FIVE_MINUTES))
    # A row that is in no cell stays: of an emptied table a run would ask for a reconcile first.
    sync.harper.upsert(contract.target_table, [rows[0] | {"id": "STAYS", "ts": None}])
    sync.harper.delete(contract.target_table, [row["id"] for row in rows])
    settle = spot_module._settled

    def after_a_run(*args: Any) -> Any:
        monkeypatch.undo()
        sync.run(contract, sync.cells(contract, NOON, TWO))
        return settle(*args)

    monkeypatch.setattr(spot_module, "_settled", after_a_run)
    found = spot(sync, tables, contract)
    assert (found.status, found.passed) == (SpotStatus.NO_DATA, False)
    assert found.metadata["rows_moved_meanwhile"] == len(rows)
    assert "a run was at work there" in found.message
    assert spot(sync, tables, contract).passed


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
    sync.harper.upsert(contract.target_table, [moved, nowhere])
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
    sync.harper.delete(contract.target_table, [rows[3]["id"]])
    ledger = sync.stores.ledger
    table = ledger.find_table(contract.id)
    assert table is not None
    cell = ledger.cells(table, NOON, ONE)[0].cell
    leases = ledger.acquire(table, [0], "test", 3 * MINUTE)
    ledger.mark(leases, ledger.now(), [Mark(cell, NOON, "a row moved away")])
    assert spot(sync, tables, contract).passed
    only = spot(sync, tables, contract, start=NOON, end=ONE)
    assert (only.status, only.passed, only.severity) == (
        SpotStatus.NO_DATA,
        False,
        Severity.WARN,
    )


def test_equal_rows_rows_in_quarantine_and_one_slice_are_understood(
    sync: Sync, tables: SmallTables
) -> None:
    source = tables.make_from(
        f"SELECT IF(n = 5, 9007199254740993, DIV(n, 3)) AS number, TIMESTAMP_ADD(TIMESTAMP"
        f" '{NOON:%F %T}+00', INTERVAL DIV(n, 3) * 5 MINUTE) AS ts"
        " FROM UNNEST(GENERATE_ARRAY(0, 35)) AS n"
    )
    contract, rows = land_two_hours(sync, source)
    assert len(quarantined(sync, contract)) == 1
    assert len(rows) == 35
    verdict = spot(sync, tables, contract)
    assert verdict.status is SpotStatus.HEALTHY
    equal = [row["id"] for row in rows if row["number"] == 4]
    assert sorted(row_id[23:] for row_id in equal) == ["", "-1", "-2"]
    sync.harper.delete(contract.target_table, equal)
    found = named(spot(sync, tables, contract))
    assert set(found) <= set(equal)
    assert {kind for kind, _ in found.values()} == {"missing"}
    one, other = (spot(sync, tables, contract, slices=[part]) for part in range(2))
    assert bool(one.rows) is not bool(other.rows)
    assert one.metadata["rows_from_bigquery"] > 0 < other.metadata["rows_from_bigquery"]


@pytest.mark.promise("M3")
def test_rows_of_every_type_are_the_same_in_both_stores(
    sync: Sync, tables: SmallTables, edges: TableRef
) -> None:
    start, end = utc(2026, 1, 5), utc(2026, 1, 5, 1)
    contract, _ = land(sync, edges, start, end)
    verdict = spot(sync, tables, contract, start=start, end=end)
    assert verdict.status is SpotStatus.HEALTHY, verdict.message
    assert verdict.metadata["rows_from_bigquery"] > 3
    assert verdict.metadata["rows_quarantined"] > 3
    pair = next(row for row in sync.rows(contract) if row["n"] == 1)
    nested = {"a": 1, "b": {"c": "\0", "d": [5e-324, -1.25]}}
    sync.harper.upsert(contract.target_table, [{"id": pair["id"], "pair": nested, "tags": None}])
    ((kind, columns),) = named(spot(sync, tables, contract, start=start, end=end)).values()
    assert (kind, set(columns)) == ("changed", {"pair", "tags"})


@pytest.mark.promise("M3")
def test_a_query_is_compared_as_it_is_now_and_a_difference_is_a_warning(
    sync: Sync, tables: SmallTables
) -> None:
    source = tables.make_from(EVERY_FIVE_MINUTES)
    query = f"SELECT * FROM {source.sql}"
    contract, rows = land_two_hours(sync, source, custom_query=query, dataset=None, table=None)
    clean = spot(sync, tables, contract)
    assert (clean.status, clean.metadata["read_at_commit"]) == (SpotStatus.HEALTHY, False)
    tables.run(f"UPDATE {source.sql} SET name = 'new' WHERE number = 8")
    verdict = spot(sync, tables, contract)
    assert (verdict.status, verdict.severity) == (SpotStatus.ISSUES_FOUND, Severity.WARN)
    assert "may have changed since the sync" in verdict.message
    assert rows[8]["id"] in named(verdict)

    tables.run(f"DELETE FROM {source.sql} WHERE TRUE")
    sync.harper.delete(contract.target_table, [row["id"] for row in rows])
    verdict = spot(sync, tables, contract)
    assert (verdict.status, verdict.passed) == (SpotStatus.NO_DATA, False)
    assert "none of the 24 rows that were synced was met" in verdict.message


@pytest.mark.promise("M3")
def test_no_rows_are_no_data_and_a_store_that_is_away_is_told_and_not_raised(
    sync: Sync,
    tables: SmallTables,
    bigquery_connection: BigQueryConnection,
    harper_connection: HarperConnection,
    nowhere: str,
) -> None:
    source = tables.make("number INT64, ts TIMESTAMP")
    contract = sync.contract(source, **FROM_NOON)
    assert spot(sync, tables, contract).status is SpotStatus.NO_DATA
    sync.run(contract, sync.cells(contract, NOON, NOON + timedelta(hours=1)))
    empty = spot(sync, tables, contract)
    assert (empty.status, empty.passed) == (SpotStatus.NO_DATA, True)

    away = bigquery_connection.model_copy(update={"endpoint": nowhere, "max_retries": 0})
    ledger = sync.stores.ledger
    subject = Subject(contract, Queries(BigQueryCalls(away)), sync.harper, ledger)
    verdict = check_spot(subject)
    assert (verdict.status, verdict.severity) == (SpotStatus.CHECK_FAILED, Severity.ERROR)
    assert nowhere in verdict.message

    stopped = harper_connection.model_copy(update={"url": nowhere})
    with HarperClient(stopped, retry=RetryPolicy(max_retries=0), breakers=Breakers()) as harper:
        verdict = check_spot(Subject(contract, tables.queries, harper, ledger))
    assert verdict.status is SpotStatus.CHECK_FAILED
