"""What `bqh doctor` says of a BigQuery that answers by hand: each failure with what to do."""

from typing import Any

import pyarrow as pa
import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.probe import probe_bigquery
from bq_harper_assets.stores.finding import Finding
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.bigquery.by_hand import (
    PROJECT,
    BigQueryByHand,
    described,
)
from bq_harper_assets_tests.stores.bigquery.storage_by_hand import StorageByHand
from bq_harper_assets_tests.stores.bigquery.test_materialised_query_answered_by_hand import contract
from bq_harper_assets_tests.stores.bigquery.test_queries import refusal

TS, DAY = {"name": "ts", "type": "TIMESTAMP"}, {"name": "day", "type": "DATE"}
NUMBER = {"name": "k", "type": "INTEGER"}


def service(*fields: dict[str, str]) -> BigQueryByHand:
    tables = described("shop", "orders", schema={"fields": list(fields)}, numRows="7")
    return BigQueryByHand(tables=tables, datasets={"shop"})


def probed(service: BigQueryByHand, *, storage: str = "", **asked: Any) -> list[Finding]:
    connection = service.connection.model_copy(update={"storage_endpoint": storage or None})
    return probe_bigquery(connection, [contract(**asked)])


def test_a_table_that_may_be_read_is_told_with_its_size() -> None:
    with (
        StorageByHand(pa.schema([("ts", pa.timestamp("us", "UTC"))]), {}) as storage,
        service(TS, NUMBER) as made,
    ):
        reached, found = probed(made, storage=storage.address)
    assert reached == Finding(
        "bigquery: run a query", "ok", f"queries may be run in {made.connection.endpoint}"
    )
    detail = f"{PROJECT}.shop.orders: 2 columns, 7 rows, may be read"
    assert found == Finding("bigquery: orders", "ok", detail)
    [session] = storage.sessions
    assert session.read_session.table == f"projects/{PROJECT}/datasets/shop/tables/orders"
    assert list(session.read_session.read_options.selected_fields) == ["ts"]
    assert session.read_session.read_options.row_restriction == "`ts` IS NULL AND FALSE"
    assert session.max_stream_count == 1
    assert [each.sql for each in made.checked] == ["SELECT 1"]
    assert made.asked == []


@pytest.mark.parametrize(
    ("fields", "problem", "next_step"),
    [
        ((NUMBER, DAY), "does not exist", "set timestampColumn to one of: day"),
        ((NUMBER,), "does not exist", "name a table with a time column"),
        (
            ({"name": "ts", "type": "STRING"}, DAY, {"name": "at", "type": "DATETIME"}),
            "is of type STRING",
            "set timestampColumn to one of: day, at",
        ),
    ],
)
def test_a_wrong_timestamp_column_is_told_with_those_that_fit(
    fields: tuple[dict[str, str], ...], problem: str, next_step: str
) -> None:
    with service(*fields) as made:
        _, found = probed(made)
    assert found == Finding(
        "bigquery: orders",
        "fail",
        f"timestampColumn 'ts' of {PROJECT}.shop.orders {problem}; a TIMESTAMP, DATETIME or DATE"
        " is needed",
        next_step,
    )


def test_a_query_is_checked_as_it_is_written() -> None:
    with service(TS) as made:
        _, found = probed(made, customQuery="SELECT 1 AS ts", dataset=None, table=None)
    assert (found.verdict, found.detail) == ("ok", "customQuery is a valid query and may be run")
    assert [each.sql for each in made.checked] == ["SELECT 1", "SELECT 1 AS ts"]


def test_a_session_that_is_not_answered_is_told() -> None:
    with service(TS) as made:
        _, found = probed(made)
    assert found.verdict == "fail"
    assert "set BIGQUERY_EMULATOR_STORAGE_HOST" in found.detail


@pytest.mark.parametrize(
    ("answer", "detail", "next_step"),
    [
        (refusal(403, "accessDenied"), "refused: ", "grant bigquery.tables.get"),
        (refusal(404, "notFound"), "not there: ", "check projectId, dataset and table"),
        (refusal(503, "backendError"), "nothing answers (ServiceUnavailable)", "start the local"),
        (refusal(400, "invalid"), "BadRequest: ", "check the table's settings"),
    ],
)
def test_each_failure_says_what_to_do(answer: Answer, detail: str, next_step: str) -> None:
    with service(TS) as made, FaultProxy(made.endpoint) as proxy:
        proxy.on(answer, matching=lambda seen: "/tables/" in seen.path, times=9)
        connection = made.connection.model_copy(update={"endpoint": proxy.url})
        reached, found = probe_bigquery(connection, [contract()])
    assert reached.verdict == "ok"
    assert found.verdict == "fail"
    assert found.detail.startswith(detail)
    assert found.next_step.startswith(next_step)


def test_nothing_more_is_tried_where_no_query_may_be_run(nowhere: str) -> None:
    connection = BigQueryConnection(project="p", endpoint=nowhere)
    [found] = probe_bigquery(connection, [contract(), contract()])
    assert found.detail == "nothing answers (ConnectionError)"
    with service(TS) as made, FaultProxy(made.endpoint) as proxy:
        proxy.on(refusal(403, "accessDenied"), times=9)
        [found] = probe_bigquery(
            connection.model_copy(update={"endpoint": proxy.url}), [contract()]
        )
    assert found.next_step == "grant bigquery.jobs.create"


def test_a_dataset_elsewhere_is_told_and_the_letters_of_a_location_may_differ() -> None:
    for location, verdict in (("EU", "fail"), ("us", "ok")):
        with service(TS) as made, FaultProxy(made.endpoint) as proxy:
            body = {
                "datasetReference": {"projectId": PROJECT, "datasetId": "shop"},
                "location": location,
            }
            proxy.on(Answer(200, body, {"Content-Type": "application/json"}), matching=is_dataset)
            connection = made.connection.model_copy(update={"endpoint": proxy.url})
            _, found = probe_bigquery(connection, [contract()])
        is_elsewhere = found.next_step == f"set location: {location}"
        assert is_elsewhere is (verdict == "fail")


def is_dataset(seen: Any) -> bool:
    return bool(seen.path.split("?")[0].endswith("/datasets/shop"))
