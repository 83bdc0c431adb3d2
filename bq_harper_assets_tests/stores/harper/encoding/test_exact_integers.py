"""Integers up to 2^53 are numbers; what lies beyond refuses its row, or is text."""

import pyarrow as pa
import pytest

from bq_harper_assets.schema.logical import Column
from bq_harper_assets_tests.stores.harper.encoding.test_column_values import (
    BEYOND,
    K,
    stored_values,
)

SAFE = [0, 1, -1, 2**53 - 1, 2**53, -(2**53)]
UNSAFE = [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]


@pytest.mark.promise("B1")
def test_integers_are_numbers_and_those_beyond_2_to_the_53_refuse_their_row() -> None:
    array = pa.array([*SAFE, *UNSAFE, None])
    refused = [f"REFUSED v: {BEYOND}"] * len(UNSAFE)
    assert stored_values(Column(name="v", kind=K.INT64), array) == [*SAFE, *refused, None]


@pytest.mark.promise("B1")
def test_under_the_policy_string_every_integer_is_kept_as_text() -> None:
    texts = stored_values(
        Column(name="v", kind=K.INT64), pa.array([*SAFE, *UNSAFE, None]), (K.INT64,)
    )
    assert texts == [str(number) for number in [*SAFE, *UNSAFE]] + [None]
