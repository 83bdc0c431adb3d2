"""What is asked to keep the result of a query, and which results of old are dropped."""

from datetime import timedelta
from typing import Any

import pytest

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.errors import BigQueryForbidden
from bq_harper_assets.stores.bigquery.key_lookup import rows_sql
from bq_harper_assets.stores.bigquery.materialised_query import (
    drop_left_over,
    drop_result,
    materialise,
    materialise_keys,
    query_of,
)
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets_tests.fault_proxy import FaultProxy
from bq_harper_assets_tests.stores.bigquery.by_hand import (
    PROJECT,
    STARTED,
    Asked,
    BigQueryByHand,
    described,
)
from bq_harper_assets_tests.stores.bigquery.test_queries import refusal

NOW = STARTED + timedelta(minutes=1)
KEY = [Column(name="k", kind=Kind.INT64)]


def contract(**keys: Any) -> TableContract:
    known = {"id": "orders", "dataset": "shop", "table": "orders", "timestampColumn": "ts"}
    return TableContract.model_validate({**known, "targetTable": "Orders", **keys})


def the_time(asked: Asked) -> list[dict[str, Any]]:
    return [{"now": NOW}] if "CURRENT_TIMESTAMP" in asked.sql else []


def test_a_table_is_asked_for_its_columns_and_filtered_rows() -> None:
    assert query_of(contract(), "p") == "SELECT * FROM `p`.`shop`.`orders` WHERE (TRUE)"
    assert query_of(contract(rowFilter="a OR b"), "p", ["k", "old v"]) == (
        "SELECT `k`, `old v` FROM `p`.`shop`.`orders` WHERE (a OR b)"
    )
    assert query_of(contract(customQuery="SELECT 1 AS ts"), "p", []) == (
        "SELECT  FROM (SELECT 1 AS ts) WHERE (TRUE)"
    )


def test_the_newest_row_of_a_key_is_always_the_same_and_rows_without_a_key_stay() -> None:
    asked = contract(latest=True, key=["k", "l"])
    assert query_of(asked, "p") == (
        "SELECT * FROM (SELECT * FROM `p`.`shop`.`orders` WHERE (TRUE)) AS r WHERE TRUE"
        " QUALIFY (`k` IS NULL OR `l` IS NULL) OR ROW_NUMBER() OVER"
        " (PARTITION BY TO_JSON_STRING(`k`), TO_JSON_STRING(`l`)"
        " ORDER BY `ts` DESC NULLS LAST, TO_JSON_STRING(r) DESC) = 1"
    )


def test_a_result_is_kept_for_two_days_in_a_table_of_its_own() -> None:
    with BigQueryByHand(the_time, billed=5) as service, service.queries(location="EU") as queries:
        kept = materialise(queries, contract(), "(`ts` > 1)", "results", ["k"])
        again = materialise(queries, contract(), "(`ts` > 1)", "results")
    assert kept.table.dataset == "results"
    assert kept.table.table.startswith("bqh_result_orders_")
    assert kept.table != again.table
    assert (kept.read_at, kept.bytes_billed) == (STARTED, 5)
    _, made, *_ = service.asked
    assert made.sql == (
        f"CREATE OR REPLACE TABLE {kept.table.sql} OPTIONS (expiration_timestamp ="
        " TIMESTAMP '2026-01-07 12:01:00.000000+00:00', labels = [('bqh', 'query-result')]) AS"
        " SELECT * FROM (SELECT `k` FROM `by-hand`.`shop`.`orders` WHERE (TRUE)) WHERE (`ts` > 1)"
    )
    assert [each["datasetReference"] for each in service.made] == [
        {"projectId": PROJECT, "datasetId": "results"}
    ] * 2
    assert [each["location"] for each in service.made] == ["EU"] * 2


def test_a_dataset_that_is_there_is_not_made() -> None:
    with (
        BigQueryByHand(the_time, datasets={"results"}) as service,
        service.queries() as queries,
    ):
        materialise(queries, contract(), "TRUE", "results")
    assert service.made == []


def test_a_dataset_that_another_run_makes_meanwhile_is_used() -> None:
    with (
        BigQueryByHand(the_time, datasets={"results"}) as service,
        FaultProxy(service.endpoint) as proxy,
    ):
        proxy.on(refusal(404, "notFound"), matching=lambda seen: seen.method == "GET")
        proxy.on(refusal(409, "duplicate"), matching=lambda seen: "/datasets" in seen.path)
        with service.queries(endpoint=proxy.url) as queries:
            kept = materialise(queries, contract(), "TRUE", "results")
    assert kept.table.dataset == "results"


def test_the_rows_of_some_keys_are_kept_alike() -> None:
    with BigQueryByHand(the_time) as service, service.queries() as queries:
        kept = materialise_keys(queries, contract(), KEY, [["1"], ["2"]], "results", ["k"])
    made = service.asked[-1]
    assert made.sql.endswith(f" AS {rows_sql(query_of(contract(), PROJECT, ['k']), KEY)}")
    assert made.parameters == {"keys": ['["1"]', '["2"]']}
    assert kept.read_at == STARTED


def listed(name: str, age: timedelta) -> dict[str, Any]:
    made = str(int((NOW - age).timestamp() * 1000))
    return described("results", name, creationTime=made)


def test_only_our_results_that_no_run_can_still_read_are_dropped_on_every_page() -> None:
    days = timedelta(days=2)
    old = [f"bqh_result_orders_{n:016x}" for n in range(5)]
    tables = {each: listed(each, days + timedelta(seconds=1)) for each in old}
    young = listed("bqh_result_orders_000000000000000f", days)
    users = [
        listed(name, 9 * days) for name in ("bqh_result_of_mine", f"my_{old[0]}", f"{old[0]}x")
    ]
    every: dict[str, Any] = {}
    for each in (young, *users, *tables.values()):
        every |= each
    with BigQueryByHand(the_time, tables=every) as service, service.queries() as queries:
        gone = drop_left_over(queries, "results")
    assert gone == [TableRef(PROJECT, "results", each) for each in old]
    assert service.dropped == [f"results.{each}" for each in old]


def test_where_nothing_was_kept_and_where_it_is_gone_already_nothing_is_wrong() -> None:
    gone = TableRef(PROJECT, "results", f"bqh_result_orders_{1:016x}")
    with BigQueryByHand(the_time) as service, service.queries() as queries:
        assert drop_left_over(queries, "results") == []
        drop_result(queries, gone)
        with pytest.raises(ValueError, match=r"by-hand\.shop\.orders is not the result"):
            drop_result(queries, TableRef(PROJECT, "shop", "orders"))
    assert service.dropped == ["results.bqh_result_orders_0000000000000001"]


def test_a_dataset_that_may_not_be_listed_is_told_and_not_taken_for_empty() -> None:
    with BigQueryByHand(the_time) as service, FaultProxy(service.endpoint) as proxy:
        proxy.on(refusal(403, "accessDenied"), matching=lambda seen: "/tables" in seen.path)
        with (
            service.queries(endpoint=proxy.url) as queries,
            pytest.raises(BigQueryForbidden, match="looking for left-over results in results"),
        ):
            drop_left_over(queries, "results")
