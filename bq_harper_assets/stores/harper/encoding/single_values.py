"""Values of one kind, none of them an array, become what Harper stores in the kind's own form."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bq_harper_assets.stores.harper.encoding.bytes_text import base64_text
from bq_harper_assets.stores.harper.encoding.exact_integers import exceeds_safe_integer
from bq_harper_assets.stores.harper.encoding.json_checks import holds_unsafe_integer, is_no_json
from bq_harper_assets.stores.harper.encoding.json_text import json_of
from bq_harper_assets.sync.arrays.arrow_memory import fixed_width, null_mask
from bq_harper_assets.sync.identity.decimals import decimal_texts, exceeds_number
from bq_harper_assets.sync.identity.faults import RowFault, fault_if

WAY_OUT = "with schemaOverrides type: string the column is kept as text"


@dataclass(frozen=True, eq=False)
class Stored:
    """Stored values have the faults of some rows, and say whether their texts are JSON already."""

    array: pa.Array
    faults: tuple[RowFault, ...] = ()
    is_json: bool = False

    def as_json(self) -> pa.Array:
        """Returns the values as JSON texts."""
        return self.array if self.is_json else json_of(self.array)


def as_it_is(values: pa.Array, path: str) -> Stored:
    """Stores the values as they are."""
    return Stored(values)


def json_values(values: pa.Array, path: str) -> Stored:
    """Stores JSON texts as the JSON that they are."""
    texts = values.cast(pa.large_string())
    faults = (
        *fault_if(is_no_json(texts), f"{path}: not JSON that can be stored; {WAY_OUT}"),
        *fault_if(holds_unsafe_integer(texts), f"{path}: an integer beyond 2^53; {WAY_OUT}"),
    )
    return Stored(pc.fill_null(texts, "null"), faults, is_json=True)


def integers(values: pa.Array, path: str) -> Stored:
    """Stores whole numbers; one that JSON cannot keep exactly is a fault."""
    values = values.cast(pa.int64())
    reason = f"{path}: beyond 2^53; with values.int64: string such columns are kept as text"
    return Stored(values, fault_if(exceeds_safe_integer(values), reason))


def integer_texts(values: pa.Array) -> pa.Array:
    """Returns whole numbers as text."""
    return values.cast(pa.int64()).cast(pa.string())


def floats(values: pa.Array, path: str) -> Stored:
    """Stores doubles; NaN and the infinities are faults."""
    values = values.cast(pa.float64())
    unbounded = ~np.isfinite(fixed_width(values, np.float64))
    nulls = null_mask(values)
    if nulls is not None:
        unbounded &= ~nulls
    return Stored(values, fault_if(unbounded, f"{path}: NaN or infinite, which JSON cannot hold"))


def decimals(values: pa.Array, path: str) -> Stored:
    """Stores decimals as doubles; one with more digits than a double keeps is a fault."""
    reason = (
        f"{path}: more than 15 digits; with values.numeric: string such columns are kept as text"
    )
    texts = decimal_texts(values)
    # Parsing finds the nearest double, which Arrow's own cast of decimals does not promise.
    return Stored(texts.cast(pa.float64()), fault_if(exceeds_number(texts), reason))


def unknown(values: pa.Array) -> pa.Array:
    """Returns what a later type of the source may be: bytes as base64, all else as it is."""
    if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        return base64_text(values)
    return values
