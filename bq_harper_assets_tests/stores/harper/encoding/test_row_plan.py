"""Plans of rows that would overwrite or lose something cannot be made."""

import pytest

from bq_harper_assets.schema.logical import Column
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets_tests.stores.harper.encoding.test_column_values import K
from bq_harper_assets_tests.stores.harper_columns import native_column


@pytest.mark.parametrize(
    ("columns", "key", "primary_key", "said"),
    [
        ([Column(name="at", kind=K.DATE), Column(name="_hash", kind=K.STRING)], (), "id", "_hash"),
        (
            [Column(name="at", kind=K.DATE), Column(name="id", kind=K.STRING)],
            (),
            "id",
            "another name",
        ),
        (
            [Column(name="at", kind=K.DATE), Column(name="id", kind=K.FLOAT64)],
            ("id",),
            "id",
            "another name",
        ),
        (
            [Column(name="at", kind=K.DATE), Column(name="id", kind=K.NUMERIC)],
            ("id",),
            "id",
            "another name",
        ),
        ([Column(name="at", kind=K.DATE)], ("gone",), "id", "gone"),
        ([Column(name="at", kind=K.DATE), Column(name="g", kind=K.GEOGRAPHY)], (), "id", "GeoJSON"),
    ],
)
def test_a_plan_that_would_overwrite_or_lose_something_cannot_be_made(
    columns: list[Column], key: tuple[str, ...], primary_key: str, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        RowPlan(
            columns=tuple(map(native_column, columns)),
            timestamp="at",
            key=key,
            primary_key=primary_key,
        )
