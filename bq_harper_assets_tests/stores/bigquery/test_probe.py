"""What `bqh doctor` says of BigQuery and of each table in it."""

from typing import Any

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.maritime.warehouse import Warehouse
from bq_harper_assets.stores.bigquery.probe import probe_bigquery
from bq_harper_assets.stores.finding import Finding
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy

DATASET = "probed"

pytestmark = pytest.mark.bigquery


@pytest.fixture(scope="module")
def tables(bigquery_connection: BigQueryConnection) -> BigQueryConnection:
    Warehouse(bigquery_connection, DATASET).make()
    return bigquery_connection


def _contract(**changes: Any) -> TableContract:
    declared = {
        "id": "positions",
        "dataset": DATASET,
        "table": "vessel_positions",
        "timestamp_column": "timestamp",
        "target_table": "Positions",
    }
    return TableContract.model_validate(declared | changes)


def _only(connection: BigQueryConnection, contract: TableContract) -> Finding:
    reached, found = probe_bigquery(connection, [contract])
    assert reached.verdict == "ok"
    return found


def test_a_table_that_can_be_read_is_ok(tables: BigQueryConnection) -> None:
    found = _only(tables, _contract())
    assert found.verdict == "ok"
    assert "18 columns, 0 rows, may be read" in found.detail


def test_a_missing_table_and_a_missing_dataset_are_not_there(tables: BigQueryConnection) -> None:
    for contract in (_contract(table="nope"), _contract(dataset="nope")):
        found = _only(tables, contract)
        assert found.verdict == "fail"
        assert found.detail.startswith("not there: ")
        assert "check projectId, dataset and table" in found.next_step


@pytest.mark.promise("G3")
@pytest.mark.parametrize(
    ("column", "problem"), [("time", "does not exist"), ("mmsi", "is of type STRING")]
)
def test_a_wrong_timestamp_column_lists_those_that_fit(
    column: str, problem: str, tables: BigQueryConnection
) -> None:
    found = _only(tables, _contract(timestamp_column=column))
    assert found.verdict == "fail"
    assert f"timestampColumn {column!r}" in found.detail
    assert problem in found.detail
    assert found.next_step == "set timestampColumn to one of: eta, timestamp"


@pytest.mark.promise("G1")
def test_a_location_that_is_not_the_datasets_is_named(tables: BigQueryConnection) -> None:
    found = _only(tables.model_copy(update={"location": "EU"}), _contract())
    assert (found.verdict, found.next_step) == ("fail", "set location: US")
    assert found.detail == f"{DATASET} is in US, location is EU"


def test_a_query_that_is_not_one_is_found_without_running_it(tables: BigQueryConnection) -> None:
    query = {
        "dataset": None,
        "table": None,
        "custom_query": f"SELECT nope FROM {DATASET}.port_events",
    }
    assert _only(tables, _contract(**query)).verdict == "fail"
    query["custom_query"] = f"SELECT * FROM {DATASET}.vessel_positions"
    assert _only(tables, _contract(**query)).verdict == "ok"


def test_no_server_is_said_once_with_the_way_to_start_one(
    tables: BigQueryConnection, nowhere: str
) -> None:
    (found,) = probe_bigquery(tables.model_copy(update={"endpoint": nowhere}), [_contract()])
    assert found.verdict == "fail"
    assert "nothing answers" in found.detail
    assert "bqh up" in found.next_step


@pytest.mark.promise("E3", "N3")
@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("", "bigquery.jobs.create"),
        (f"/datasets/{DATASET}?", "bigquery.datasets.get"),
        ("/tables/", "bigquery.tables.get"),
    ],
)
def test_a_right_that_is_missing_is_named(
    tables: BigQueryConnection, path: str, right: str
) -> None:
    assert tables.endpoint is not None
    denied = (
        b'{"error": {"code": 403, "message": "denied", "errors": [{"reason": "accessDenied"}]}}'
    )
    with FaultProxy(tables.endpoint) as proxy:
        proxy.on(Answer(403, denied), matching=lambda seen: path in seen.path, times=9)
        findings = probe_bigquery(tables.model_copy(update={"endpoint": proxy.url}), [_contract()])
    found = findings[-1]
    assert (found.verdict, found.next_step) == ("fail", f"grant {right}")
