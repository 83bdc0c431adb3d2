"""Windows in partitions that did not change need no look; what is not sure is looked at."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.partition_times import is_untouched, partition_times
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets_tests.stores.bigquery.by_hand import PROJECT, BigQueryByHand, described
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc

SYNCED = utc(2026, 11, 16, 12)
LONG_BEFORE, AFTER = SYNCED - timedelta(hours=1), SYNCED + timedelta(seconds=1)
START = utc(2026, 11, 15, 7)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.mark.parametrize(
    ("times", "length", "untouched"),
    [
        ({"20261115": LONG_BEFORE}, HOUR, True),
        ({"20261115": LONG_BEFORE, "20261114": AFTER}, HOUR, True),
        ({"20261115": AFTER}, HOUR, False),
        ({"20261115": SYNCED - timedelta(minutes=4)}, HOUR, False),
        ({"20261114": LONG_BEFORE}, HOUR, False),
        ({"2026111507": LONG_BEFORE}, HOUR, True),
        ({"2026111507": LONG_BEFORE, "2026111508": AFTER}, HOUR, True),
        ({"2026111507": LONG_BEFORE}, DAY, False),
        ({f"202611{15 + n // 24}{n % 24:02}": LONG_BEFORE for n in range(7, 31)}, DAY, True),
        ({f"202611{15 + n // 24}{n % 24:02}": LONG_BEFORE for n in range(7, 30)}, DAY, False),
        ({"202611": LONG_BEFORE}, DAY, True),
        ({"2026": AFTER}, DAY, False),
        ({"2026": LONG_BEFORE}, DAY, True),
        ({"20261115": SYNCED - timedelta(minutes=5)}, HOUR, True),
        ({"20261115": LONG_BEFORE, "__NULL__": AFTER}, HOUR, True),
        ({}, HOUR, False),
        ({"17": LONG_BEFORE}, HOUR, False),
        ({"20261115": LONG_BEFORE, "2026111507": LONG_BEFORE}, HOUR, False),
    ],
)
def test_a_window_is_untouched_if_all_its_partitions_changed_well_before_it_was_synced(
    times: dict[str, datetime], length: timedelta, untouched: bool
) -> None:
    assert is_untouched(times, START, START + length, SYNCED) is untouched


@pytest.mark.bigquery
def test_the_emulator_is_not_asked_since_its_times_do_not_move(
    bigquery_connection: BigQueryConnection,
) -> None:
    source = SmallTables.at(bigquery_connection).make("ts TIMESTAMP")
    queries = Queries(BigQueryCalls(bigquery_connection))
    with queries.client:
        assert partition_times(queries, source) == {}


TABLE = TableRef(PROJECT, "shop", "orders")


@contextmanager
def service(monkeypatch: pytest.MonkeyPatch, **known: Any) -> Iterator[BigQueryByHand]:
    """Is taken for BigQuery itself, and tells of three partitions."""
    rows = [
        {"partition_id": "20261115", "last_modified_time": LONG_BEFORE},
        {"partition_id": None, "last_modified_time": LONG_BEFORE},
        {"partition_id": "20261116", "last_modified_time": None},
        {"partition_id": "20261117", "last_modified_time": AFTER},
    ]
    with BigQueryByHand(lambda asked: rows, tables=described("shop", "orders", **known)) as made:
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", made.endpoint)
        yield made


def asked_for(made: BigQueryByHand, key_file: Path) -> Mapping[str, datetime]:
    queries = Queries(BigQueryCalls(made.as_service(key_file)))
    with queries.client:
        return partition_times(queries, TABLE)


def test_an_emulator_is_asked_nothing() -> None:
    with BigQueryByHand() as made, made.queries() as queries:
        assert partition_times(queries, TABLE) == {}
    assert made.asked == []


def test_bigquery_is_asked_for_the_times_of_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service(monkeypatch) as made:
        times = asked_for(made, tmp_path / "key.json")
    assert times == {"20261115": LONG_BEFORE, "20261117": AFTER}
    [asked] = made.asked
    assert asked.sql == (
        "SELECT partition_id, last_modified_time FROM"
        " `by-hand`.`shop`.INFORMATION_SCHEMA.PARTITIONS WHERE table_name = @name"
    )
    assert asked.parameters == {"name": "orders"}


def test_times_prove_nothing_while_rows_are_in_the_streaming_buffer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer = {"estimatedRows": "1", "estimatedBytes": "1", "oldestEntryTime": "1767571200000"}
    with service(monkeypatch, streamingBuffer=buffer) as made:
        assert asked_for(made, tmp_path / "key.json") == {}
    assert made.asked == []
