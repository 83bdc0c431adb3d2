"""What a source asks for the rows of a contract, and what it makes of the answers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import micros_at
from bq_harper_assets.ledger.position import InstantPosition
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.errors import BigQueryRefused
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.source import (
    TIME_TRAVEL,
    BigQuerySource,
    Pinned,
    bigquery_source,
    oldest_row,
    pinned,
    source_schema,
)
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.errors import KeyNotUnique, SourceSchemaMoved
from bq_harper_assets_tests.stores.bigquery.by_hand import (
    PROJECT,
    STARTED,
    Asked,
    BigQueryByHand,
    described,
)
from bq_harper_assets_tests.stores.bigquery.storage_by_hand import StorageByHand
from bq_harper_assets_tests.stores.small_tables import utc

START, END = utc(2026, 1, 5), utc(2026, 1, 5, 2)
NOW = utc(2026, 1, 6, 12)
HOUR = timedelta(hours=1)
FIELDS = [
    {"name": "k", "type": "INTEGER"},
    {"name": "v", "type": "STRING"},
    {"name": "ts", "type": "TIMESTAMP"},
]
ARROW = pa.schema([("k", pa.int64()), ("v", pa.string()), ("ts", pa.timestamp("us", "UTC"))])
ROWS = pa.record_batch({"k": [1, 2], "v": ["a", "b"], "ts": [START, START]}, schema=ARROW)
AT = "FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-06 12:00:00.000000+00:00'"


def contract(**keys: Any) -> TableContract:
    known = {"id": "orders", "dataset": "shop", "table": "orders", "timestampColumn": "ts"}
    return TableContract.model_validate({**known, "targetTable": "Orders", "key": ["k"], **keys})


def answers(*rows: Sequence[dict[str, Any]]) -> Callable[[Asked], Sequence[dict[str, Any]]]:
    """The time to who asks for it, and these rows to the other questions, in turn."""
    left = list(rows)

    def answer(asked: Asked) -> Sequence[dict[str, Any]]:
        if "CURRENT_TIMESTAMP" in asked.sql:
            return [{"now": NOW}]
        return left.pop(0) if left else []

    return answer


@contextmanager
def service(
    *rows: Sequence[dict[str, Any]], is_view: bool = False, **known: Any
) -> Iterator[BigQueryByHand]:
    more = {"schema": {"fields": FIELDS}, **known, **({"type": "VIEW"} if is_view else {})}
    tables = described("shop", "orders", **more)
    with BigQueryByHand(answers(*rows), tables=tables, fields=FIELDS) as made:
        yield made


@contextmanager
def pin(made: BigQueryByHand, asked: TableContract, **settings: Any) -> Iterator[Pinned]:
    with (
        made.queries(**settings) as queries,
        pinned(queries, harper_plan, asked, START, END) as found,
    ):
        yield found


def last_sql(made: BigQueryByHand) -> str:
    return made.asked[-1].sql


def test_a_table_is_pinned_at_bigquerys_own_time_and_only_its_time_is_asked_for() -> None:
    with service() as made, pin(made, contract(rowFilter="v > ''")) as found:
        assert found.source.table == TableRef(PROJECT, "shop", "orders")
        assert (found.t, found.source.at, found.position) == (NOW, NOW, InstantPosition(NOW))
        assert found.source.row_filter == "v > ''"
        assert found.source.time_column.name == "ts"
        assert found.has_past
        assert found.names == ("k", "v", "ts")
    assert [asked.sql for asked in made.asked] == ["SELECT CURRENT_TIMESTAMP() AS now"]
    assert made.dropped == []


@pytest.mark.parametrize(
    ("is_view", "keys"),
    [
        (True, {}),
        (False, {"latest": True}),
        (False, {"customQuery": "SELECT * FROM shop.orders"}),
    ],
    ids=["view", "latest", "query"],
)
def test_what_has_no_past_is_kept_within_its_range_and_dropped_afterwards(
    is_view: bool, keys: dict[str, Any]
) -> None:
    asked = contract(rowFilter="v > ''", **keys)
    with service(is_view=is_view) as made:
        with pin(made, asked, results_dataset="kept") as found:
            assert found.source.table.dataset == "kept"
            assert (found.t, found.source.at, found.has_past) == (STARTED, None, False)
            assert found.source.row_filter is None  # it was applied to what is kept
            [sql] = [each.sql for each in made.asked if each.sql.startswith("CREATE")]
            assert "SELECT `k`, `v`, `ts` FROM" in sql
            assert "WHERE (v > '')" in sql
            assert sql.endswith(
                " WHERE (`ts` >= TIMESTAMP '2026-01-05 00:00:00.000000+00:00'"
                " AND `ts` < TIMESTAMP '2026-01-05 02:00:00.000000+00:00')"
            )
            assert made.dropped == []
        assert made.dropped == [f"kept.{found.source.table.table}"]


def test_a_result_is_dropped_although_the_run_fails() -> None:
    with service() as made:
        with pytest.raises(RuntimeError), pin(made, contract(latest=True)):
            raise RuntimeError
        assert len(made.dropped) == 1


def test_what_a_killed_run_has_left_is_dropped_before_another_result_is_kept() -> None:
    left = f"bqh_result_orders_{1:016x}"
    with service() as made:
        made.tables |= described("kept", left, creationTime="0")
        with pin(made, contract(latest=True), results_dataset="kept"):
            assert made.dropped == [f"kept.{left}"]


def test_the_columns_of_a_query_are_asked_for_without_running_it() -> None:
    with service() as made, made.queries() as queries:
        of_query = source_schema(queries, contract(customQuery="SELECT 1", rowFilter="x"))
        of_table = source_schema(queries, contract())
    assert [column.name for column in of_query.columns] == ["k", "v", "ts"]
    assert (of_query.is_table, of_table.is_table) == (False, True)
    assert of_table.columns == of_query.columns
    assert [each.sql for each in made.checked] == ["SELECT * FROM (SELECT 1) WHERE (x)"]
    assert made.asked == []


def test_a_table_is_read_a_week_back_less_an_hour() -> None:
    with service() as made, pin(made, contract()) as found:
        assert found.keeps(NOW)
        assert found.keeps(NOW - TIME_TRAVEL + timedelta(microseconds=1))
        assert not found.keeps(NOW - TIME_TRAVEL)
        assert timedelta(days=7) - TIME_TRAVEL == HOUR


def test_the_same_columns_are_read_as_they_were_under_the_names_of_then() -> None:
    with service() as made, pin(made, contract()) as found:
        version = found.plan.version
        called = {"v": "old_v"}
        then = replace(
            version,
            columns=tuple(
                replace(each, source=replace(each.source, name=called.get(each.name, each.name)))
                for each in version.columns
            ),
        )
        before = found.at(NOW - HOUR, then)
        assert (before.t, before.source.at) == (NOW - HOUR, NOW - HOUR)
        assert before.names == ("k", "old_v", "ts")
        assert [each.read_as for each in before.source.columns] == ["k", "old_v", "ts"]
        assert [each.name for each in before.source.columns] == ["k", "v", "ts"]
        assert (found.t, found.names) == (NOW, ("k", "v", "ts"))


def test_rows_without_later_columns_are_read_and_identified_without_them() -> None:
    with service() as made, pin(made, contract(key=None)) as found:
        assert [each.name for each in found.source.id_columns] == ["k", "v", "ts"]
        some = found.restricted({"k", "ts"})
        assert [each.name for each in some.source.columns] == ["k", "ts"]
        assert some.names == ("k", "ts")
        assert [each.name for each in some.source.id_columns] == ["k", "ts"]
        assert some.t == found.t


def test_fingerprints_are_those_of_the_range_by_the_start_of_each_window() -> None:
    one = {"w": micros_at(START + HOUR), "n": 2, "d": 2, "x": 1, "low": 1, "high": 1}
    with service([one]) as made, pin(made, contract()) as found:
        told = found.fingerprints(micros_at(START), micros_at(END))
    assert {start: each.rows for start, each in told.items()} == {
        micros_at(START): 0,
        micros_at(START + HOUR): 2,
    }
    assert AT in last_sql(made)


def test_the_times_of_keys_are_looked_up_at_t_or_in_what_the_query_returns_now() -> None:
    rows = [{"asked": '["7"]', "micros": 5}]
    with service(rows, rows) as made, pin(made, contract(rowFilter="v > ''")) as found:
        assert found.times_of_keys([(6,), (7,)]) == {1: 5}
        assert AT in last_sql(made)
        assert "WHERE (v > '')" in last_sql(made)
        assert found.times_of_keys_now([(7,)]) == {0: 5}
        assert "FROM (SELECT `k`, `v`, `ts` FROM `by-hand`.`shop`.`orders`" in last_sql(made)
        assert "SYSTEM_TIME" not in last_sql(made)
    assert "k0 = v0" in last_sql(made)


def test_rows_are_asked_again_later_and_dropped_when_they_are_read() -> None:
    with service() as made, pin(made, contract(latest=True)) as found:
        first = found.source.table
        with found.asked_again([(7,), (8,)]) as again:
            assert again.source.table != first
            assert (again.t, again.names) == (STARTED, found.names)
            assert made.asked[-1].parameters == {"keys": ['["7"]', '["8"]']}
            assert "SELECT `k`, `v`, `ts` FROM" in last_sql(made)
            assert made.dropped == []
        assert made.dropped == [f"{again.source.table.dataset}.{again.source.table.table}"]


def test_doubled_keys_are_told_with_their_values_and_nobody_else_is() -> None:
    doubled = [{"k": 1, "v": "a", "n": 2}, {"k": 3, "v": "b", "n": 9}]
    with service([], doubled) as made, pin(made, contract(key=["k", "v"], rowFilter="x")) as found:
        found.require_unique_key()
        with pytest.raises(KeyNotUnique) as told:
            found.require_unique_key()
    assert str(told.value).startswith(
        "the key k, v of orders is not unique in BigQuery: k = 1, v = 'a' (2 rows);"
        " k = 3, v = 'b' (9 rows). Nothing was written."
    )
    assert last_sql(made) == (
        f"SELECT `k`, `v`, COUNT(*) AS n FROM `by-hand`.`shop`.`orders` {AT}"
        " WHERE (`k` IS NOT NULL AND `v` IS NOT NULL) AND (x)"
        " GROUP BY `k`, `v` HAVING COUNT(*) > 1 LIMIT 3"
    )


def test_the_key_of_a_query_is_looked_for_in_all_its_rows_and_that_of_latest_in_what_is_kept() -> (
    None
):
    with service() as made, pin(made, contract(customQuery="SELECT 1")) as found:
        found.require_unique_key()
        assert "FROM (SELECT `k`, `v`, `ts` FROM (SELECT 1) WHERE (TRUE)) WHERE" in last_sql(made)
    with service() as made, pin(made, contract(latest=True)) as found:
        found.require_unique_key()
        assert f"FROM {found.source.table.sql} WHERE" in last_sql(made)


def test_a_table_without_a_key_is_not_asked_for_doubled_ones() -> None:
    with service() as made, pin(made, contract(key=None)) as found:
        count = len(made.asked)
        found.require_unique_key()
        assert len(made.asked) == count


def test_the_oldest_row_is_that_of_the_query_or_of_the_table() -> None:
    with service([{"oldest": START}], [{"oldest": None}]) as made, made.queries() as queries:
        assert oldest_row(queries, contract()) == START
        assert last_sql(made) == (
            "SELECT CAST(MIN(`ts`) AS TIMESTAMP) AS oldest FROM `by-hand`.`shop`.`orders`"
        )
        assert oldest_row(queries, contract(customQuery="SELECT 1")) is None
        assert last_sql(made).endswith(" AS oldest FROM (SELECT 1)")


def refused(made: BigQueryByHand, fields: Sequence[dict[str, Any]]) -> None:
    """The columns of the table are others, and a query of the old ones is refused."""
    made.tables = described("shop", "orders", schema={"fields": list(fields)})
    raise BigQueryRefused("Unrecognized name: v")


def test_a_query_that_fails_for_a_column_that_is_gone_by_now_says_so() -> None:
    with (
        service() as made,
        pytest.raises(SourceSchemaMoved, match="v was removed"),
        pin(made, contract()),
    ):
        refused(made, [FIELDS[0], FIELDS[2]])


def test_a_query_that_fails_for_another_reason_says_that_one() -> None:
    for fields in (FIELDS, [*FIELDS, {"name": "new", "type": "STRING"}]):
        with (
            service() as made,
            pytest.raises(BigQueryRefused, match="Unrecognized name"),
            pin(made, contract()),
        ):
            refused(made, fields)


SPLIT = ("`ts` >= TIMESTAMP '2026-01-05 00:00:00", "`ts` < TIMESTAMP '2026-01-05 02:00:00")


def test_the_rows_of_a_range_are_read_through_streams_at_the_instant() -> None:
    streams = {"a": [ROWS], "b": [ROWS.slice(1)]}
    with (
        service() as made,
        StorageByHand(ARROW, streams, estimated_bytes=700) as storage,
        pin(made, contract(rowFilter="v > ''"), storage_endpoint=storage.address) as found,
    ):
        splits = found.splits(micros_at(START), micros_at(END), 5)
        assert found.bytes_read == 700
        assert [[b.num_rows for b in split.batches()] for split in splits] == [[2], [1]]
        found.splits_at([START, START + HOUR], 1)
        assert found.bytes_read == found.at(NOW - HOUR, found.plan.version).bytes_read == 1400
    ranged, at_instants = storage.sessions
    options = ranged.read_session.read_options
    assert list(options.selected_fields) == ["k", "v", "ts"]
    assert all(bound in options.row_restriction for bound in SPLIT)
    assert options.row_restriction.endswith("AND (v > '')")
    assert ranged.max_stream_count == 5
    assert ranged.read_session.table == f"projects/{PROJECT}/datasets/shop/tables/orders"
    assert ranged.read_session.table_modifiers.snapshot_time == NOW
    assert at_instants.read_session.read_options.row_restriction == (
        "(`ts` IN (TIMESTAMP '2026-01-05 00:00:00.000000+00:00',"
        " TIMESTAMP '2026-01-05 01:00:00.000000+00:00')) AND (v > '')"
    )
    assert at_instants.max_stream_count == 1
    assert splits[0].give_up_after == contract().sync.give_up_after
    assert splits[0].connection == found.queries.connection


def test_rows_that_arrive_with_another_type_are_not_read() -> None:
    other = pa.schema([("k", pa.string()), ("v", pa.string()), ("ts", pa.timestamp("us", "UTC"))])
    with (
        service() as made,
        StorageByHand(other, {"a": []}) as storage,
        pin(made, contract(), storage_endpoint=storage.address) as found,
        pytest.raises(SourceSchemaMoved, match="k was INT64 and arrives as string"),
    ):
        found.splits(micros_at(START), micros_at(END), 1)


BY_TS = {"timePartitioning": {"type": "DAY", "field": "ts"}}
BY_ARRIVAL = {"timePartitioning": {"type": "DAY"}}
CHANGED = [{"partition_id": "20260105", "last_modified_time": utc(2026, 1, 5, 6)}]


@pytest.mark.parametrize(
    ("layout", "keys", "proven"),
    [
        (BY_TS, {}, [False, True]),
        (BY_ARRIVAL, {}, [False, False]),
        ({}, {}, [False, False]),
        (BY_TS, {"latest": True}, [False, False]),
    ],
    ids=["by its time", "by arrival", "none", "a query"],
)
def test_windows_are_unchanged_if_the_times_of_partitions_by_their_column_prove_it(
    layout: dict[str, Any],
    keys: dict[str, Any],
    proven: list[bool],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin, end = micros_at(START), micros_at(END)
    with service(CHANGED, **layout) as made:
        if keys:
            made.answer = answers([], CHANGED)
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", made.endpoint)
        queries = Queries(BigQueryCalls(made.as_service(tmp_path / "key.json")))
        asked = contract(**keys)
        with queries.client, pinned(queries, harper_plan, asked, START, END) as found:
            count = len(made.asked)
            assert found.are_unchanged([]) == []
            assert len(made.asked) == count
            spans = [(begin, end, utc(2026, 1, 5, 6)), (begin, end, utc(2026, 1, 5, 7))]
            assert found.are_unchanged(spans) == proven


def test_a_source_opens_with_labels_and_counts_what_it_costs() -> None:
    with (
        service() as made,
        bigquery_source(made.connection, {"run": "R1"}, harper_plan) as source,
    ):
        made.billed = 30
        assert isinstance(source, BigQuerySource)
        asked = contract(window="1d")
        assert [column.name for column in source.schema(asked).columns] == ["k", "v", "ts"]
        assert source.planned(asked).selection.timestamp.kind is Kind.TIMESTAMP
        assert source.calls_sent == 2
        with source.pinned(asked, micros_at(START), micros_at(END)) as found:
            assert found.t == NOW
        assert source.bytes_billed == 30
        assert source.calls_sent == 4
        with source.pinned(contract(latest=True), micros_at(START), micros_at(END)):
            [sql] = [each.sql for each in made.asked if each.sql.startswith("CREATE")]
        assert all(bound in sql for bound in SPLIT)
    assert made.asked[0].job["configuration"]["labels"] == {"bqh": "sync", "run": "r1"}


def test_the_planned_version_follows_the_one_before() -> None:
    with service() as made, made.queries() as queries:
        source = BigQuerySource(queries, harper_plan)
        first = source.planned(contract(key=None)).version
        wider = [*FIELDS, {"name": "new", "type": "STRING"}]
        made.tables = described("shop", "orders", schema={"fields": wider})
        again = source.planned(contract(key=None), first).version
        assert again.id_paths == first.id_paths == ("k", "v", "ts")
        with source.pinned(contract(key=None), micros_at(START), micros_at(END), first) as found:
            assert [each.name for each in found.source.columns] == ["k", "v", "ts", "new"]
            assert [each.name for each in found.source.id_columns] == ["k", "v", "ts"]
