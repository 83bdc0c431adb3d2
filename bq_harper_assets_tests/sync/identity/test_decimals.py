"""Decimals as text, and which of them a number holds."""

from decimal import Decimal

import pyarrow as pa
import pytest

from bq_harper_assets.sync.identity.decimals import decimal_texts, exceeds_number


@pytest.mark.promise("B2")
@pytest.mark.parametrize(
    ("value", "beyond"),
    [
        ("0", False),
        ("123456789012345", False),
        ("-1234567.89012345", False),
        ("0.000000001", False),
        ("99999999999999000000000000000", False),
        ("1234567890123456", True),
        ("1234567.890123456", True),
        ("99999999999999999999999999999.999999999", True),
    ],
)
def test_fifteen_digits_are_what_a_number_holds(value: str, beyond: bool) -> None:
    for type_ in (pa.decimal128(38, 9), pa.decimal256(76, 38)):
        assert exceeds_number(decimal_texts(pa.array([Decimal(value), None], type_))).tolist() == [
            beyond,
            False,
        ]


def test_the_largest_bignumeric_keeps_its_77_digits() -> None:
    largest = 5 * 10**76 + 7
    raw = largest.to_bytes(32, "little", signed=True)
    array = pa.Array.from_buffers(pa.decimal256(76, 38), 1, [None, pa.py_buffer(raw)])
    text = decimal_texts(array)[0].as_py()
    assert text == f"5{'0' * 38}.{'0' * 37}7"
