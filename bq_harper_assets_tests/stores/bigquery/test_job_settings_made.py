"""The settings of a query job, as they are handed to Google's library."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from bq_harper_assets.stores.bigquery.job_settings import query_settings

MOMENT = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "BOOL"),
        (1, "INT64"),
        (1.5, "FLOAT64"),
        (Decimal("1.5"), "NUMERIC"),
        ("a", "STRING"),
        (b"a", "BYTES"),
        (MOMENT, "TIMESTAMP"),
        (date(2026, 1, 5), "DATE"),
    ],
)
def test_each_value_travels_as_its_own_type_alone_and_in_a_list(value: Any, kind: str) -> None:
    one, many = query_settings({"one": value, "many": [value]}, {}, None).query_parameters
    assert (one.name, one.type_, one.value) == ("one", kind, value)
    assert (many.name, many.array_type, many.values) == ("many", kind, [value])


def test_an_empty_list_is_one_of_texts_and_what_has_no_type_is_refused() -> None:
    [none] = query_settings({"none": ()}, {}, None).query_parameters
    assert (none.array_type, none.values) == ("STRING", [])
    with pytest.raises(TypeError, match="no BigQuery parameter is made of object"):
        query_settings({"odd": object()}, {}, None)  # type: ignore[dict-item]


def test_labels_are_in_letters_that_bigquery_takes_and_not_too_long() -> None:
    settings = query_settings({}, {"Run id": "A/b.C-d_1", "long": "x" * 64}, None)
    assert settings.labels == {"run_id": "a_b_c-d_1", "long": "x" * 63}


@pytest.mark.parametrize("limit", [None, 0, 7])
def test_a_limit_is_sent_only_where_there_is_one(limit: int | None) -> None:
    assert query_settings({}, {}, limit).maximum_bytes_billed == limit
