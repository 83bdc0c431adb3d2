"""Keys are looked up in portions, and each time comes back at the place of its key."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.key_lookup import (
    KEYS_PER_QUERY,
    key_parameter,
    key_text,
    lookup_sql,
    rows_sql,
    times_of_keys,
)
from bq_harper_assets_tests.stores.bigquery.by_hand import Asked, BigQueryByHand

TS = Column(name="ts", kind=Kind.TIMESTAMP)
KEY = [Column(name="k", kind=Kind.INT64), Column(name="s", kind=Kind.STRING)]


def numbered(asked: Asked) -> Sequence[Mapping[str, Any]]:
    """The last key first, each at a time that is its number; every seventh is not there."""
    found = [(key, int(json.loads(key)[0])) for key in asked.parameters["keys"]]
    return [{"asked": key, "micros": n} for key, n in reversed(found) if n % 7]


@pytest.mark.parametrize("count", [KEYS_PER_QUERY, KEYS_PER_QUERY + 1])
def test_each_key_is_asked_for_once_and_its_time_is_at_its_place(count: int) -> None:
    # Few answers: what counts here are the questions.
    with (
        BigQueryByHand(lambda asked: [*numbered(asked)[:2], *numbered(asked)[-2:]]) as service,
        service.queries() as queries,
    ):
        texts = [[str(n), "x"] for n in range(1, count + 1)]
        found = times_of_keys(queries, "`t`", None, KEY, TS, texts, table="t")
    assert found
    assert all(n == at + 1 for at, n in found.items())
    portions = [asked.parameters["keys"] for asked in service.asked]
    assert [key for keys in portions for key in keys] == key_parameter(texts)
    assert len(portions) == -(-count // KEYS_PER_QUERY)
    assert max(len(keys) for keys in portions) <= KEYS_PER_QUERY


def test_a_key_without_a_row_is_left_out_and_one_without_a_time_is_not() -> None:
    answer = [{"asked": '["3"]', "micros": None}, {"asked": '["1"]', "micros": 7}]
    with BigQueryByHand(lambda asked: answer) as service, service.queries() as queries:
        texts = [["1"], ["2"], ["3"]]
        found = times_of_keys(queries, "`t`", None, KEY[:1], TS, texts, table="t")
    assert found == {0: 7, 2: None}


def test_without_keys_nothing_is_asked() -> None:
    with BigQueryByHand() as service, service.queries() as queries:
        assert times_of_keys(queries, "`t`", None, KEY, TS, [], table="t") == {}
    assert service.asked == []


def test_keys_are_compared_column_by_column_within_the_filter() -> None:
    assert lookup_sql("`p.d.t`", "a OR b", KEY, TS) == (
        "SELECT asked, micros FROM (SELECT asked, SAFE_CAST(JSON_VALUE(asked, '$[0]') AS INT64) AS"
        " v0, JSON_VALUE(asked, '$[1]') AS v1 FROM UNNEST(@keys) AS asked)"
        " JOIN (SELECT `k` AS k0, `s` AS k1, UNIX_MICROS(`ts`) AS micros FROM `p.d.t`"
        " WHERE (a OR b)) ON k0 = v0 AND k1 = v1"
    )
    assert " WHERE " not in lookup_sql("`p.d.t`", None, KEY, TS)


def test_the_rows_of_some_keys_are_those_whose_key_is_the_same_in_every_column() -> None:
    key = [Column(name="b", kind=Kind.BYTES), Column(name="s", kind=Kind.STRING)]
    assert rows_sql("SELECT 1", key) == (
        "SELECT q.* FROM (SELECT SAFE.FROM_BASE64(JSON_VALUE(asked, '$[0]')) AS v0,"
        " JSON_VALUE(asked, '$[1]') AS v1 FROM UNNEST(@keys) AS asked) AS k"
        " JOIN (SELECT 1) AS q ON q.`b` = k.v0 AND q.`s` = k.v1"
    )


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        (True, "true"),
        (False, "false"),
        (5.0, "5"),
        (-1.25, "-1.25"),
        (1e21, "1000000000000000000000"),
        (1e-7, "0.0000001"),
        (5, "5"),
        ("a", "a"),
    ],
)
def test_a_stored_value_is_written_as_a_cast_reads_it(stored: Any, text: str) -> None:
    assert key_text(stored) == text
