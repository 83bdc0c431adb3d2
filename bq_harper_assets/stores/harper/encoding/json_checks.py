"""These checks find the texts of JSON columns that may not be put into a request as they are.

They must be JSON and nothing but; numbers must fit a double; integers must not be beyond 2^53, for
Harper would round them; surrogates must come in pairs. Of equal names in an object Harper keeps the
last; in BigQuery's own JSON values there are none.
"""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from bq_harper_assets.stores.harper.encoding.exact_integers import LARGEST_INTEGER
from bq_harper_assets.stores.harper.encoding.json_text import joined
from bq_harper_assets.sync.arrays.arrow_memory import Bools, variable_width

_STRING = r'"(?:[^"\\]|\\.)*"'
# In JSON any letter of a name may be written as an escape.
_THEN = r'(?:t|\\u0074)(?:h|\\u0068)(?:e|\\u0065)(?:n|\\u006[eE])"'
_NOTHING_READ = pa.schema([("n", pa.int8())])


def _larger_than(limit: int) -> str:
    """Returns a pattern for the digits of every whole number above the limit."""
    digits = str(limit)
    larger = [
        f"{digits[:at]}[{int(digit) + 1}-9][0-9]{{{len(digits) - at - 1}}}"
        for at, digit in enumerate(digits)
        if digit != "9"
    ]
    return "|".join([*larger, f"[1-9][0-9]{{{len(digits)},}}"])


_LARGE = rf"(?:^|[^0-9.eE+\-])-?(?:{_larger_than(LARGEST_INTEGER)})(?:$|[^0-9.eE])"


def is_no_json(texts: pa.Array) -> Bools:
    """Says where a text is not a JSON value that can be stored; NULLs are fine."""
    present = texts.drop_null()
    bad = np.zeros(len(texts), np.bool_)
    found = _unreadable(present)
    # Arrow's reader takes these for numbers; elsewhere outside of strings JSON has no N or I.
    found |= _outside_strings(present, "NaN|Inf", "[NI]")
    bad[texts.is_valid().to_numpy(zero_copy_only=False)] = found
    return bad


def holds_unsafe_integer(texts: pa.Array) -> Bools:
    """Says where JSON has an integer that a JavaScript number may not hold exactly."""
    return _outside_strings(texts, _LARGE, _LARGE)


def passes_for_promise(texts: pa.Array) -> Bools:
    """Says where JSON is an object with something under `then`, for which Harper 4.7.29 waits.

    Such an object is stored well, but selecting the column fails, and SQL answers NULL for the row.
    """
    found = _matches(texts, _THEN)
    for at in np.flatnonzero(found):
        found[at] = _has_then(texts[at].as_py())
    return found


def _has_then(text: str) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False  # is_no_json() rejects it
    return isinstance(value, dict) and value.get("then") not in (None, 0, "")  # 0 is also false


def _outside_strings(texts: pa.Array, hint: str, pattern: str) -> Bools:
    found: Bools = _matches(texts, hint)
    if found.any():
        hinted = texts.filter(pa.array(found))
        found[found] = _matches(pc.replace_substring_regex(hinted, _STRING, '""'), pattern)
    return found


def _matches(texts: pa.Array, pattern: str) -> Bools:
    matches = pc.fill_null(pc.match_substring_regex(texts, pattern), False)
    found: Bools = matches.to_numpy(zero_copy_only=False).copy()
    return found


def _unreadable(texts: pa.Array) -> Bools:
    """Finds unreadable texts by trying halves, because nearly always there is none."""
    if _all_readable(texts):
        return np.zeros(len(texts), np.bool_)
    if len(texts) == 1:
        return np.ones(1, np.bool_)
    half = len(texts) // 2
    return np.concatenate([_unreadable(texts[:half]), _unreadable(texts[half:])])


def _all_readable(texts: pa.Array) -> bool:
    if len(texts) == 0:
        return True
    # Only one whole value fits both members: what would end one early breaks the other.
    rows = joined(['{"v":', texts, ',"w":[', texts, "]}\n"])
    _, _, data = variable_width(rows)
    options = arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1)
    ignoring = arrow_json.ParseOptions(
        explicit_schema=_NOTHING_READ, unexpected_field_behavior="ignore"
    )
    try:
        arrow_json.read_json(pa.py_buffer(data), options, ignoring)
    except pa.ArrowInvalid:
        return False
    return True
