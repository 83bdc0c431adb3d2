"""Integers that a double does not keep exactly are found, and none that it keeps."""

import pyarrow as pa
import pytest

from bq_harper_assets.stores.harper.encoding.exact_integers import (
    LARGEST_INTEGER,
    exceeds_safe_integer,
)

MOST = LARGEST_INTEGER


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([], []),
        ([None], [False]),
        ([MOST, -MOST], [False, False]),
        ([MOST + 1, 1], [True, False]),
        ([-MOST - 1, 1, None], [True, False, False]),
        ([-MOST - 1, MOST + 1, None, MOST], [True, True, False, False]),
    ],
)
def test_only_values_beyond_the_limits_are_found(
    values: list[int | None], found: list[bool]
) -> None:
    assert exceeds_safe_integer(pa.array(values, pa.int64())).tolist() == found


def test_a_value_under_null_is_not_found() -> None:
    values = pa.array([MOST + 1, MOST + 2], mask=pa.array([True, False]).to_numpy(False))
    assert exceeds_safe_integer(values).tolist() == [False, True]
