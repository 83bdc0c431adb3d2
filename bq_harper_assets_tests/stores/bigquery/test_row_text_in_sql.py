"""The SQL that makes the text of a row, letter by letter."""

import pytest

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.row_text import row_hash, row_text
from bq_harper_assets.stores.bigquery.types import BIGQUERY_KINDS

A, B = Column(name="a", kind=Kind.INT64), Column(name="b", kind=Kind.STRING)
NUMBER = "IF(`a` IS NULL, '', CONCAT('\"a\":', TO_JSON_STRING(`a`)))"


def test_columns_are_in_the_order_of_their_names_and_null_leaves_no_trace() -> None:
    text = "IF(`b` IS NULL, '', CONCAT('\"b\":', TO_JSON_STRING(`b`)))"
    assert row_text([B, A]) == row_text([A, B]) == f"CONCAT({NUMBER}, {text})"


def test_a_renamed_column_is_read_by_its_old_name_and_written_by_its_new_one() -> None:
    renamed = Column(name="b", kind=Kind.STRING, source_name="old b")
    assert row_text([renamed]) == (
        "CONCAT(IF(`old b` IS NULL, '', CONCAT('\"b\":', TO_JSON_STRING(`old b`))))"
    )


def test_the_hash_is_of_the_whole_text() -> None:
    assert row_hash([A]) == f"FARM_FINGERPRINT(TO_HEX(MD5(CONCAT({NUMBER}))))"


def test_a_quote_or_backslash_in_a_name_ends_no_text() -> None:
    odd = Column(name="it's \\ ü", kind=Kind.INT64, source_name="a")
    assert "'\"it\\'s \\\\\\\\ ü\":'" in row_text([odd])


def test_an_array_of_plain_values_is_written_at_once_and_an_empty_one_not_at_all() -> None:
    many = Column(name="a", kind=Kind.INT64, repeated=True)
    assert row_text([many]) == (
        "CONCAT(IF(ARRAY_LENGTH(`a`) > 0, CONCAT('\"a\":', TO_JSON_STRING(`a`)), ''))"
    )


def test_arrays_of_other_values_are_written_in_their_order_at_any_depth() -> None:
    inner = Column(name="y", kind=Kind.BYTES, repeated=True)
    outer = Column(name="s", kind=Kind.STRUCT, repeated=True, fields=(inner, A))
    assert row_text([outer]) == (
        "CONCAT(IF(ARRAY_LENGTH(`s`) > 0, CONCAT('\"s\":', '[', (SELECT STRING_AGG("
        "CONCAT('{', CONCAT(IF(e0.`a` IS NULL, '', CONCAT('\"a\":', TO_JSON_STRING(e0.`a`))),"
        " IF(ARRAY_LENGTH(e0.`y`) > 0, CONCAT('\"y\":', '[',"
        " (SELECT STRING_AGG(TO_JSON_STRING(TO_HEX(e1)), ',' ORDER BY o1)"
        " FROM UNNEST(e0.`y`) AS e1 WITH OFFSET AS o1), ']'), '')), '}'), ',' ORDER BY o0)"
        " FROM UNNEST(`s`) AS e0 WITH OFFSET AS o0), ']'), ''))"
    )


def test_a_struct_is_its_fields_between_braces() -> None:
    column = Column(name="s", kind=Kind.STRUCT, fields=(A,))
    assert row_text([column]) == (
        "CONCAT(IF(`s` IS NULL, '', CONCAT('\"s\":', CONCAT('{',"
        " CONCAT(IF(`s`.`a` IS NULL, '', CONCAT('\"a\":', TO_JSON_STRING(`s`.`a`)))), '}'))))"
    )


@pytest.mark.parametrize(("count", "begins"), [(50, "CONCAT("), (51, "ARRAY_TO_STRING([")])
def test_a_wide_row_is_no_deep_nest_of_concat(count: int, begins: str) -> None:
    columns = [Column(name=f"c{n:03}", kind=Kind.INT64) for n in range(count)]
    text = row_text(columns)
    assert text.startswith(f"{begins}IF(`c000` IS NULL")
    assert text.count(" IS NULL") == count
    assert text.endswith(")" if count == 50 else "], '')")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind.INT64, "TO_JSON_STRING(v)"),
        (Kind.FLOAT64, "TO_JSON_STRING(IF(v = 0, 0.0, v))"),
        (Kind.BYTES, "TO_JSON_STRING(TO_HEX(v))"),
        (Kind.GEOGRAPHY, "TO_JSON_STRING(ST_ASTEXT(v))"),
        (Kind.INTERVAL, "TO_JSON_STRING(CAST(v AS STRING))"),
        (
            Kind.RANGE,
            "TO_JSON_STRING(CONCAT(IFNULL(CAST(RANGE_START(v) AS STRING), 'UNBOUNDED'), ', ',"
            " IFNULL(CAST(RANGE_END(v) AS STRING), 'UNBOUNDED')))",
        ),
    ],
)
def test_each_kind_has_its_own_text(kind: Kind, text: str) -> None:
    assert BIGQUERY_KINDS[kind].text("v") == text
