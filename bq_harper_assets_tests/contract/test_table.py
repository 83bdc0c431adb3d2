"""Every key of a table: what is accepted, what it is when left out, and what is refused."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from bq_harper_assets.contract.table import ColumnOverride, QuarantineLimit, Sync, TableContract
from bq_harper_assets_tests.contract.conftest import Disk

OneTable = Callable[[str], Disk]
MINUTE = timedelta(minutes=1)
DEFAULTS: dict[str, Any] = {
    "columns": ("*",),
    "manage": "create",
    "key": None,
    "window": 60 * MINUTE,
    "slices": 4,
    "safety_lag": MINUTE,
    "revisit": timedelta(hours=24),
    "scrub": timedelta(days=7),
    "deletes": "mirror",
    "live": True,
    "latest": False,
    "spot_check_size": 10,
    "max_request_bytes": 262144,
    "custom_query": None,
    "row_filter": None,
    "schema_overrides": {},
}
SYNC_DEFAULTS = Sync(
    initial_batch_size=10000,
    catchup_batch_size=1000,
    steady_batch_size=500,
    poll_interval=30000,
    catchup_threshold=3600,
    steady_threshold=600,
    give_up_after=10 * MINUTE,
    start_timestamp=None,
)
GOOD: list[tuple[str, str, Any]] = [
    ("columns: '*'", "columns", ("*",)),
    ("columns: ['*']", "columns", ("*",)),
    ("columns:", "columns", ("*",)),
    ("columns: [created_at, no, on]", "columns", ("created_at", "no", "on")),
    ("manage: create", "manage", "create"),
    ("manage: adopt", "manage", "adopt"),
    ("key: order_id", "key", ("order_id",)),
    ("key: [region, order_id]", "key", ("region", "order_id")),
    ("window: 5\nsync: {startTimestamp: 2026-06-01}", "window", 5 * MINUTE),
    ("window: 15m\nsync: {startTimestamp: 2026-06-01}", "window", 15 * MINUTE),
    ("window: 15 minutes\nsync: {startTimestamp: 2026-06-01}", "window", 15 * MINUTE),
    ("window: 30min", "window", 30 * MINUTE),
    ("window: 1h", "window", 60 * MINUTE),
    ("window: 60m", "window", 60 * MINUTE),
    ("window: 1d", "window", timedelta(days=1)),
    ("window: 1 day", "window", timedelta(days=1)),
    ("slices: 1", "slices", 1),
    ("slices: 64\nwindow: 1d", "slices", 64),
    ("safetyLag: 90s", "safety_lag", timedelta(seconds=90)),
    ("safetyLag: 90", "safety_lag", timedelta(seconds=90)),
    ("safetyLag: 0s", "safety_lag", timedelta(0)),
    ("revisit: 5m", "revisit", 5 * MINUTE),
    ("revisit: 2h", "revisit", timedelta(hours=2)),
    ("revisit: 365d", "revisit", timedelta(days=365)),
    ("scrub: 1d", "scrub", timedelta(days=1)),
    ("scrub: 30d", "scrub", timedelta(days=30)),
    ("deletes: keep", "deletes", "keep"),
    ("deletes: flag", "deletes", "flag"),
    ("live: false", "live", False),
    ("live: true", "live", True),
    ("latest: true\nkey: order_id", "latest", True),
    ("spotCheckSize: 1", "spot_check_size", 1),
    ("spot_check_size: 1000", "spot_check_size", 1000),
    ("maxRequestBytes: 16384", "max_request_bytes", 16384),
    ("max_request_bytes: 8388608", "max_request_bytes", 8388608),
    ("rowFilter: status = 'paid'", "row_filter", "status = 'paid'"),
    ("customQuery: SELECT * FROM shop.orders", "custom_query", "SELECT * FROM shop.orders"),
    (
        "schemaOverrides:\n"
        "  latitude: { type: 'number', indexed: true }\n"
        "  tags: { type: 'array' }",
        "schema_overrides",
        {
            "latitude": ColumnOverride(type="number", indexed=True),
            "tags": ColumnOverride(type="array", indexed=None),
        },
    ),
]
GOOD_SYNC: list[tuple[str, str, Any]] = [
    ("initialBatchSize: 1", "initial_batch_size", 1),
    ("catchup_batch_size: 250", "catchup_batch_size", 250),
    ("steadyBatchSize: 1000000", "steady_batch_size", 1000000),
    ("pollInterval: 1000", "poll_interval", 1000),
    ("catchupThreshold: 601", "catchup_threshold", 601),
    ("steadyThreshold: 3599", "steady_threshold", 3599),
    ("giveUpAfter: 90s", "give_up_after", timedelta(seconds=90)),
    ("give_up_after: 1d", "give_up_after", timedelta(days=1)),
    ("startTimestamp: 2026-06-01", "start_timestamp", datetime(2026, 6, 1, tzinfo=UTC)),
    (
        "startTimestamp: 2026-06-01T10:00:00",
        "start_timestamp",
        datetime(2026, 6, 1, 10, tzinfo=UTC),
    ),
    (
        "startTimestamp: 2026-06-01T10:00:00Z",
        "start_timestamp",
        datetime(2026, 6, 1, 10, tzinfo=UTC),
    ),
    (
        "startTimestamp: '2026-06-01T10:00:00+02:00'",
        "start_timestamp",
        datetime(2026, 6, 1, 8, tzinfo=UTC),
    ),
]
WHOLE = ["0", "-1", "x", "true", "1.5", "5 5", "[1]", "1_000", "0x10"]
BAD = [
    *(f"slices: {bad}" for bad in [*WHOLE, "65"]),
    *(f"spotCheckSize: {bad}" for bad in [*WHOLE, "0", "1001"]),
    *(f"maxRequestBytes: {bad}" for bad in [*WHOLE, "16383", "8388609"]),
    *(f"window: {bad}" for bad in ["0", "7", "45m", "2h", "hour", "1.0", "true", "[5]", "-5"]),
    *(f"safetyLag: {bad}" for bad in ["-1", "soon", "1.5", "2d", "true", "90x", "1w"]),
    *(f"revisit: {bad}" for bad in ["-1", "366d", "x"]),
    *(f"scrub: {bad}" for bad in ["0s", "23h", "366d", "x"]),
    *(f"manage: {bad}" for bad in ["true", "adopted", "[adopt]"]),
    *(f"deletes: {bad}" for bad in ["drop", "true", "[mirror]"]),
    *(f"live: {bad}" for bad in ["yes", "1", "on"]),
    *(f"latest: {bad}" for bad in ["true", "maybe\nkey: a"]),
    *(
        f"columns: {bad}"
        for bad in ["[]", "[1]", "[' ']", "['*', a]", "a", "[created_at, Created_At]"]
    ),
    *(f"columns: {bad}" for bad in ["[total]", "[Created_at]", "{a: b}", "[created_at, a.b]"]),
    *(f"key: {bad}" for bad in ["[]", "{a: b}", "[a, a]", "' '", "a\ncolumns: [created_at]"]),
    *(f"values: {{{bad}}}" for bad in ["int64: number", "numeric: quarantine", "float: string"]),
    *(f"sync: {{{key}: {bad}}}" for key in ("initialBatchSize", "pollInterval") for bad in WHOLE),
    *(f"sync: {{{key}: 0}}" for key in ("catchupBatchSize", "steadyBatchSize", "steadyThreshold")),
    *(f"sync: {{pollInterval: {bad}}}" for bad in ("30", "999", "86400001")),
    *(f"sync: {{giveUpAfter: {bad}}}" for bad in ("0s", "2d", "soon", "-1", "true")),
    "sync: {catchupThreshold: 600}",
    "sync: {steadyThreshold: 3600}",
    *(
        f"sync: {{startTimestamp: {bad}}}"
        for bad in ["yesterday", "1700000000", "2026-13-01", "true"]
    ),
    "sync: [1]",
    *(f"schemaOverrides: {bad}" for bad in ["{a: {}}", "{a: {type: int}}", "{a: {indexed: yes}}"]),
    *(f"schemaOverrides: {bad}" for bad in ["[a]", "{a: number}", "{_hash: {indexed: true}}"]),
    "schemaOverrides: {a: {indexed: true}}\ncolumns: [created_at]",
    "schemaOverrides: {a: {indexed: true}, A: {indexed: false}}",
    *(f"rowFilter: {bad}" for bad in ["''", "[a]", "'a = 1; DROP TABLE x'", "'a IN (SELECT 1)'"]),
    *(f"customQuery: {bad}" for bad in ["DELETE FROM x", "5", "' '", "'SELECT 1; SELECT 2'"]),
]


def contract(disk: Disk) -> TableContract:
    (table,) = disk.load().tables
    return table


@pytest.mark.promise("G7")
@pytest.mark.promise("G8")
def test_what_is_left_out_has_its_default(one_table: OneTable) -> None:
    table = contract(one_table(""))
    assert {name: getattr(table, name) for name in DEFAULTS} == DEFAULTS
    assert table.sync == SYNC_DEFAULTS
    assert (table.values.int64, table.values.numeric) == ("quarantine", "number")


@pytest.mark.promise("G4")
@pytest.mark.promise("F4")
@pytest.mark.parametrize(("lines", "name", "value"), GOOD)
def test_a_good_value_is_taken(lines: str, name: str, value: Any, one_table: OneTable) -> None:
    assert getattr(contract(one_table(lines)), name) == value


@pytest.mark.promise("G7")
@pytest.mark.promise("G8")
@pytest.mark.parametrize(("line", "name", "value"), GOOD_SYNC)
def test_a_good_sync_value_is_taken(line: str, name: str, value: Any, one_table: OneTable) -> None:
    assert getattr(contract(one_table(f"sync:\n  {line}")).sync, name) == value


def test_value_policies_are_taken(one_table: OneTable) -> None:
    values = contract(one_table("values: {int64: string, numeric: string}")).values
    assert (values.int64, values.numeric) == ("string", "string")


@pytest.mark.promise("G4")
@pytest.mark.promise("G7")
@pytest.mark.parametrize("lines", BAD)
def test_a_bad_value_is_refused_at_its_own_place(lines: str, one_table: OneTable) -> None:
    told = one_table(lines).refusal()
    assert told.startswith("1 problem ")
    key = lines.split(":")[0]
    assert re.search(
        rf"^config/tables\.yaml:[78]: tables\[0\]\.{key}\b.* \(table orders\)$", told, re.MULTILINE
    )


def test_a_query_needs_no_dataset_and_table(disk: Disk) -> None:
    text = "tables: [{id: q, timestampColumn: t, targetTable: Q, customQuery: SELECT * FROM x}]"
    (table,) = disk.tables(text).load().tables
    assert (table.dataset, table.table) == (None, None)


def test_numbers_and_flags_may_stand_in_quotes(one_table: OneTable) -> None:
    table = contract(one_table("slices: '2'\nlive: 'false'\nwindow: '30'"))
    assert (table.slices, table.live, table.window) == (2, False, 30 * MINUTE)


def test_a_shared_default_that_contradicts_a_table_is_told_where_it_stands(disk: Disk) -> None:
    told = disk.tables(
        "sync:\n  steady_threshold: 500\ntables:\n- {id: a, dataset: b, table: c,\n"
        "   timestampColumn: d, targetTable: E, sync: {catchupThreshold: 400}}\n"
    ).refusal()
    assert told.startswith("1 problem ")
    assert "config/tables.yaml:2: tables[0].sync.steadyThreshold = 500 (table a)" in told


def test_a_table_overrules_a_shared_default_in_either_spelling(disk: Disk) -> None:
    disk.tables(
        "sync: {pollInterval: 5000, giveUpAfter: 5m}\ntables:\n- {id: a, dataset: b, table: c,\n"
        "   timestampColumn: d, targetTable: E, sync: {poll_interval: 6000}}\n"
    )
    assert contract(disk).sync.poll_interval == 6000
    assert contract(disk).sync.give_up_after == 5 * MINUTE


def test_a_contract_cannot_be_changed_and_takes_nothing_unknown() -> None:
    table = TableContract(id="a", dataset="b", table="c", timestamp_column="d", target_table="E")
    with pytest.raises(ValidationError):
        table.slices = 2  # type: ignore[misc]
    with pytest.raises(ValidationError):
        TableContract(id="a", dataset="b", table="c", timestamp_column="d", target_table="E", x=1)  # type: ignore[call-arg]


def test_a_number_may_come_from_a_variable(one_table: OneTable) -> None:
    lines = ("slices: ${N}", "window: ${W}", "live: ${L}", "deletes: ${D}", "safetyLag: ${S:-30}")
    disk = one_table("\n".join((*lines, "columns: ${C:-}")))
    (table,) = disk.load({"N": "8", "W": "1d", "L": "false", "D": "keep"}).tables
    assert (table.slices, table.window, table.live, table.deletes) == (
        8,
        timedelta(days=1),
        False,
        "keep",
    )
    assert (table.safety_lag, table.columns) == (timedelta(seconds=30), ("*",))
    assert "must be a whole number" in disk.refusal(
        {"N": "1.5", "W": "1d", "L": "true", "D": "keep"}
    )


def test_more_rows_may_fail_where_there_are_many() -> None:
    limit = QuarantineLimit()
    assert [limit.of(rows) for rows in (0, 100_000, 100_100, 200_000)] == [1000, 1000, 1001, 2000]
    assert QuarantineLimit(rows=0, percent=50).of(7) == 3


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("renames: {old: created_at}", "created_at identifies rows or puts them into windows"),
        ("key: number\nrenames: {old: number}", "number identifies rows or puts them into"),
        ("columns: [Created_At]", "created_at, the timestamp column: it is spelled Created_At"),
        ("columns: [total]", "created_at, the timestamp column: add it, or use ['*']"),
        ("columns: [created_at]\nkey: number", "columns leaves out number: add it, or use ['*']"),
    ],
)
def test_keys_that_contradict_each_other_are_told_with_the_way_out(
    lines: str, told: str, one_table: OneTable
) -> None:
    refusal = one_table(lines).refusal()
    assert refusal.startswith("1 problem ")
    assert told in refusal


def test_other_columns_may_be_renamed(one_table: OneTable) -> None:
    assert contract(one_table("renames: {old: new}")).renames == {"old": "new"}
    assert contract(one_table("key: number\nrenames: {old: new}")).renames == {"old": "new"}


@pytest.mark.parametrize("name", ["dataset", "table"])
def test_a_source_without_a_query_needs_dataset_and_table(name: str, disk: Disk) -> None:
    keys = {"id": "a", "dataset": "b", "table": "c", "timestampColumn": "d", "targetTable": "E"}
    text = ", ".join(f"{key}: {value}" for key, value in keys.items() if key != name)
    told = disk.tables(f"tables: [{{{text}}}]").refusal()
    assert f"is missing: name the source's {name}, or give a customQuery" in told
