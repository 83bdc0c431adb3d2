"""JSON columns: what may be put into a request as it is."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.stores.harper.encoding.json_checks import (
    holds_unsafe_integer,
    is_no_json,
    passes_for_promise,
)

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text('abNI"\\', max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
WORDS = ('"a"', "null", "true", '"v":', '"w":[', "1e999", "\\ud800", "é", "NaN", "Infinity")
# Pieces that JSON is made of, put together so that the outcome is often nearly JSON.
NEARLY = st.lists(
    st.sampled_from([*'{}[],:"\\ \n\t019-.eEntfu', *WORDS]),
    max_size=8,
).map("".join)


def _refuse_constant(text: str) -> None:
    raise ValueError(text)


def _is_json(text: str) -> bool:
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError:
        return False
    return True


def _finite(text: str) -> float:
    if abs(float(text)) == float("inf"):
        raise ValueError(text)
    return float(text)


def _unsafe(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_unsafe, value.values()))
    if isinstance(value, list):
        return any(map(_unsafe, value))
    return isinstance(value, int) and abs(value) > 2**53


@pytest.mark.promise("B8")
@settings(deadline=None, max_examples=150)
@given(st.lists(VALUES, max_size=5), st.sampled_from([None, 2]))
def test_json_is_taken_unless_it_holds_integers_that_would_be_rounded(
    values: list[Any], indent: int | None
) -> None:
    texts = pa.array([json.dumps(value, indent=indent) for value in values], pa.string())
    assert holds_unsafe_integer(texts).tolist() == [_unsafe(value) for value in values]
    too_long = [any(len(part) > 300 for part in json.dumps(value).split()) for value in values]
    if not any(too_long):
        assert not is_no_json(texts.cast(pa.large_string())).any()


@settings(deadline=None, max_examples=600)
@given(st.lists(NEARLY, min_size=1, max_size=3))
def test_what_is_nearly_json_is_refused(texts: list[str]) -> None:
    expected = [not _is_json(text) for text in texts]
    assert is_no_json(pa.array(texts, pa.large_string())).tolist() == expected


BAD = [
    "",
    " ",
    "{",
    "1 2",
    "1,2",
    '1,"v":2',
    "1],[2",
    '1}\n{"v":1',
    '1}{"n":0,"v":2',
    "[1",
    "1]",
    '"',
    "NaN",
    "[-Infinity]",
    "1e999",
    '"\\ud800"',
    '"\\udc00x"',
    "01",
    "1.",
    "'a'",
    "[1,]",
    '"\t"',
    "\ufeff1",
]


@pytest.mark.parametrize("text", BAD)
def test_one_bad_text_is_found_among_good_ones(text: str) -> None:
    good = ['{"a":[1,{"b":null}]}', None, '"NaN and Infinity"', "null"]
    for at in range(len(good) + 1):
        texts = pa.array([*good[:at], text, *good[at:]], pa.large_string())
        assert is_no_json(texts).tolist() == [place == at for place in range(len(texts))]


@pytest.mark.promise("B8")
def test_only_integers_outside_of_strings_are_measured() -> None:
    fine = [
        "9007199254740992",
        "-9007199254740992",
        '"90071992547409930"',
        '{"90071992547409930":1}',
        "0.12345678901234567890",
        "1.5e300",
        "123456789012345678.0",
        '["\\"",1,"[90071992547409930]"]',
        "90071992547409930e-2",
        None,
    ]
    rounded = [
        "9007199254740993",
        "-9007199254740993",
        '{"a":[1,18446744073709551615]}',
        '["\\"",9007199254740993,"x"]',
        '{"id" : 10000000000000000 }',
        "[1,-9999999999999999]",
    ]
    assert not holds_unsafe_integer(pa.array(fine)).any()
    assert holds_unsafe_integer(pa.array(rounded)).all()


PROMISES = [
    '{"then":"s"}',
    '{"a":1, "then" : {"b":1}}',
    '{"then":[]}',
    '{"then":0,"then":1}',
    '{"\\u0074he\\u006E":true}',
]
NO_PROMISES = [
    '{"then":null}',
    '{"then":-0.0}',
    '{"then":""}',
    '{"then":false}',
    '{"o":{"then":1}}',
    '[{"then":1}]',
    '{"Then":1,"athen":1}',
    '"then"',
    '{"then":',
    None,
]


@pytest.mark.promise("B8")
def test_only_an_object_with_something_under_then_passes_for_a_promise() -> None:
    texts = pa.array([*PROMISES, *NO_PROMISES], pa.large_string())
    expected = [True] * len(PROMISES) + [False] * len(NO_PROMISES)
    assert passes_for_promise(texts).tolist() == expected
