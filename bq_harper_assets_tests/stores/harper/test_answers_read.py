"""What each text of Harper means, without a Harper: which error it is, and what an answer says."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from bq_harper_assets.retries.retry import Call
from bq_harper_assets.stores.harper.answers import (
    Attribute,
    Creation,
    WriteCount,
    error_class,
    error_text,
    missing_rights,
    read_creation,
    read_description,
    read_json,
    read_rows,
    read_written,
    require_ids,
    seconds_to_retry_after,
)
from bq_harper_assets.stores.harper.errors import (
    HarperError,
    HarperExists,
    HarperIndexing,
    HarperNotFound,
    HarperNotUnderstood,
    HarperRefused,
    HarperRowBroken,
    HarperUnauthorized,
    HarperUnavailable,
)

CALL = Call("Harper", "upsert", "Orders")
ATTRIBUTE = Call("Harper", "create_attribute", "Orders")
NO_TABLE = "Cannot read properties of undefined (reading 'attributes')"


@pytest.mark.promise("I1")
@pytest.mark.parametrize(
    ("call", "status", "error", "expected"),
    [
        (CALL, 401, "Login failed", HarperUnauthorized),
        (CALL, 403, "Table 'data.Orders' does not exist", HarperUnauthorized),
        (CALL, 402, "pay", HarperRefused),
        (CALL, 404, "Not found", HarperRefused),
        (CALL, 429, "too many", HarperUnavailable),
        (CALL, 502, "", HarperUnavailable),
        (CALL, 503, "overloaded", HarperUnavailable),
        (CALL, 504, "", HarperUnavailable),
        (CALL, 501, "", HarperRefused),
        (CALL, 503, '"b_id" is not indexed yet, can not search', HarperIndexing),
        (CALL, 400, '"b_id" is not indexed yet, can not search', HarperRefused),
        (CALL, 500, "Commit failed: the disk is full", HarperUnavailable),
        (CALL, 500, "No commit: Commit failed", HarperRefused),
        (CALL, 400, "Commit failed: the disk is full", HarperRefused),
        (CALL, 400, "Table 'Orders' already exists in 'data'", HarperExists),
        (CALL, 409, "database 'data' already exists", HarperExists),
        (ATTRIBUTE, 400, "attribute 'b_id' already exists in data.Orders", HarperExists),
        (CALL, 404, "Table 'Orders' already exists in 'data'", HarperRefused),
        (CALL, 500, "Table 'Orders' already exists in 'data'", HarperRefused),
        (CALL, 400, "wrong: Table 'Orders' already exists", HarperRefused),  # a quoted value
        (CALL, 404, "Table 'data.Orders' does not exist", HarperNotFound),
        (CALL, 400, "database 'data' does not exist", HarperNotFound),
        (CALL, 404, "Table data.Orders not found", HarperNotFound),
        (CALL, 409, "Table 'data.Orders' does not exist", HarperRefused),
        (CALL, 500, "Table 'data.Orders' does not exist", HarperRefused),
        (ATTRIBUTE, 500, NO_TABLE, HarperNotFound),
        (ATTRIBUTE, 400, NO_TABLE, HarperRefused),
        (ATTRIBUTE, 500, f"{NO_TABLE}!", HarperRefused),
        (CALL, 500, NO_TABLE, HarperRefused),
    ],
)
def test_status_and_text_together_choose_the_error(
    call: Call, status: int, error: str, expected: type[HarperError]
) -> None:
    assert error_class(call, status, error) is expected


@pytest.mark.parametrize(
    ("body", "text", "whole"),
    [
        (b'{"error": "no"}', "no", {"error": "no"}),
        (
            b'{"statusCode": 400, "error": "Bad Request", "message": "body is empty"}',
            "body is empty",
            {"statusCode": 400, "error": "Bad Request", "message": "body is empty"},
        ),
        (b'{"message": "of another kind"}', "None", {"message": "of another kind"}),
        (b"[1]", "[1]", {}),
        (b"<html>\xff</html>", "<html>\ufffd</html>", {}),
    ],
)
def test_the_reason_of_an_error_is_found_wherever_harper_puts_it(
    body: bytes, text: str, whole: dict[str, Any]
) -> None:
    assert error_text(body) == (text, whole)


@pytest.mark.promise("A6")
def test_a_403_is_told_with_every_right_that_is_missing() -> None:
    error = {
        "unauthorized_access": [
            {
                "schema": "data",
                "table": "Orders",
                "required_table_permissions": ["insert", "update"],
                "required_attribute_permissions": [
                    {"attribute_name": "_hash", "required_permissions": ["read"]},
                    {"attribute_name": "none"},
                ],
            },
            "Operation 'createTable' is restricted to 'super_user' roles",
            "Operation 'restart' is restricted to 'super_user' roles",
        ],
        "invalid_schema_items": ["Table 'data.Ports' does not exist"],
    }
    assert missing_rights(error) == (
        "insert on table data.Orders",
        "update on table data.Orders",
        "read on attribute '_hash' of table data.Orders",
        'to make tables: "structure_user": ["data"]',
        "Operation 'restart' is restricted to 'super_user' roles",
        "a right to it, if it is there: Table 'data.Ports' does not exist",
    )
    assert missing_rights({}) == ()


def test_a_time_to_come_back_is_read_as_seconds_or_as_a_date() -> None:
    assert [seconds_to_retry_after(text) for text in ("7", " 7 ", "0")] == [7.0, 7.0, 0.0]
    assert [seconds_to_retry_after(text) for text in (None, "soon", "-7")] == [None, None, None]
    later = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
    of_utc = seconds_to_retry_after(format_datetime(later, usegmt=True))
    assert of_utc == pytest.approx(3_600, abs=60)
    # A time without a zone, which is written -0000, is taken as UTC.
    without_zone = seconds_to_retry_after(format_datetime(later.replace(tzinfo=None)))
    assert without_zone == pytest.approx(of_utc, abs=60)
    elsewhere = format_datetime(later).replace("+0000", "-0200")
    assert seconds_to_retry_after(elsewhere) == pytest.approx(3 * 3_600, abs=60)
    assert seconds_to_retry_after("Wed, 18 Nov 2020 12:00:00 GMT") == 0.0


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"message":"upserted 2 of 3 records","skipped_hashes":["b"]}', WriteCount(2, ("b",))),
        (b'{"message":"upserted 2 of 3 records"}', WriteCount(2)),
        (b'{"message":"2 of 2 records successfully deleted"}', WriteCount(2)),
        (b'{"message":"deleted 2 of 2 records","skipped_hashes":["b"]}', WriteCount(2, ("b",))),
        # The ids of a write that stored all rows are not parsed.
        (b'{"message":"upserted 2 of 2 records","upserted_hashes":[...', WriteCount(2)),
        (b'{"message":"upserted 2 of 2 records","skipped_hashes":[],...', WriteCount(2)),
    ],
)
def test_a_write_is_counted_by_harpers_own_words(body: bytes, expected: WriteCount) -> None:
    assert read_written(CALL, body) == expected


def test_a_write_without_a_count_and_a_text_that_is_no_json_are_not_understood() -> None:
    with pytest.raises(HarperNotUnderstood, match="answered 200 without a count") as caught:
        read_written(CALL, b'{"message":"done"}')
    assert (caught.value.call, caught.value.status) == (CALL, 200)
    assert read_json(CALL, b'{"a": [1]}') == {"a": [1]}
    with pytest.raises(HarperNotUnderstood, match="something else than JSON") as caught:
        read_json(CALL, b"<html>")
    assert (caught.value.call, caught.value.status) == (CALL, 200)


@pytest.mark.parametrize(
    ("row", "asked"),
    [
        ({"id": 1, "error": "a column of that name"}, ("id", "error")),
        ({"error": "a column of that name"}, ("error",)),
        ({"message": "a column of that name"}, ("id", "message")),
        ({"error": "x", "message": "both are columns"}, ("message", "error")),
        ({}, ("id",)),
    ],
)
def test_a_row_may_have_columns_that_are_called_as_errors_are(
    row: dict[str, Any], asked: tuple[str, ...]
) -> None:
    rows = [{"id": 1}, row]
    assert read_rows(CALL, rows, asked) == rows


@pytest.mark.parametrize(
    "row", [{"error": "cannot read"}, {"error": "cannot read", "message": "why"}, "text", None]
)
def test_an_error_among_the_rows_of_an_answer_fails_all_of_it(row: Any) -> None:
    with pytest.raises(HarperRowBroken, match="in place 2 of 3 rows") as caught:
        read_rows(CALL, [{"id": 1}, row, {"id": 3}], ("id",))
    assert (caught.value.call, caught.value.status) == (CALL, 200)
    with pytest.raises(HarperRowBroken):
        read_rows(CALL, [row], ("id", "error"))


def test_an_answer_that_is_no_list_of_rows_is_not_understood() -> None:
    with pytest.raises(HarperNotUnderstood, match="something else than rows") as caught:
        read_rows(CALL, {"id": 1}, ("id",))
    assert (caught.value.call, caught.value.status) == (CALL, 200)


def test_each_row_must_have_an_id() -> None:
    rows = [{"id": 0, "a": 1}, {"id": "", "a": 2}]
    assert require_ids(rows, "id", "search_by_id", "Orders") == [0, ""]
    for broken in ({"a": 3}, {"id": None, "a": 3}):
        with pytest.raises(HarperRowBroken, match="in place 3 of 3 rows") as caught:
            require_ids([*rows, broken], "id", "search_by_id", "Orders", "2026-01-05T00:00|s01")
        assert caught.value.call == Call("Harper", "search_by_id", "Orders", "2026-01-05T00:00|s01")


def described(**more: Any) -> dict[str, Any]:
    return {
        "schema": "data",
        "name": "Orders",
        "hash_attribute": "id",
        "attributes": [],
        "schema_defined": True,
        "audit": False,
        "record_count": 7,
        **more,
    }


def test_a_table_is_described_attribute_by_attribute() -> None:
    attributes = [
        {"attribute": "id", "type": "ID"},
        {"attribute": "a", "indexed": True},
        {"attribute": "b", "indexed": {}},
        {"attribute": "c", "indexed": False, "nullable": True},
        {"attribute": "d", "nullable": False},
    ]
    found = read_description(CALL, described(attributes=attributes))
    assert found.attributes == (
        Attribute(name="id", type="ID"),
        Attribute(name="a", indexed=True),
        Attribute(name="b", indexed=True),
        Attribute(name="c"),
        Attribute(name="d", required=True),
    )
    assert (found.attributes[3].indexed, found.attributes[3].required) == (False, False)
    assert (found.database, found.name, found.primary_key) == ("data", "Orders", "id")
    assert (found.schema_defined, found.audit, found.record_count) == (True, False, 7)
    assert found.is_count_exact
    assert not read_description(CALL, described(estimated_record_range=[5, 9])).is_count_exact


@pytest.mark.parametrize("told", [{}, described(attributes=None), None])
def test_a_description_in_unknown_words_is_not_understood(told: Any) -> None:
    with pytest.raises(HarperNotUnderstood, match="described a table in an unknown way") as caught:
        read_description(CALL, told)
    assert (caught.value.call, caught.value.status) == (CALL, 200)


def test_what_exists_already_was_not_made_now() -> None:
    assert read_creation(b"{}") == Creation(True, "answered 200")
    refused = HarperExists(CALL, "answered 400: Table 'Orders' already exists in 'data'", 400)
    assert read_creation(refused) == Creation(False, refused.said)
