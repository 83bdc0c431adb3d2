"""A key of one column is a row's id in Harper, if Harper can store it and find it again."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.harper.encoding.exact_integers import exceeds_safe_integer
from bq_harper_assets.stores.harper.index_keys import UNESCAPED, UNITS, is_lost
from bq_harper_assets.stores.harper.types import HARPER_KINDS, Form, HarperColumn
from bq_harper_assets.sync.arrays.arrow_memory import Bools
from bq_harper_assets.sync.identity.faults import RowFault, fault_if
from bq_harper_assets.sync.identity.row_id import null_keys

LONGEST_KEY = 1978  # bytes; Harper answers 500 to a longer one


def key_ids(array: pa.Array, column: HarperColumn) -> tuple[pa.Array, tuple[RowFault, ...]]:
    """Returns the ids of rows with these values of their key, and why some can have none."""
    faults = null_keys(array, column.name)
    if column.kind is Kind.INT64:
        if column.form is Form.TEXT:
            return pc.cast(array, pa.string()), faults
        beyond = f"key {column.name}: beyond 2^53; values.int64: string keeps it as text"
        return array, (*faults, *fault_if(exceeds_safe_integer(array), beyond))
    texts = HARPER_KINDS[column.kind].texts
    ids = array if texts is None else texts(array)
    sizes = pc.fill_null(pc.binary_length(ids), 1).to_numpy(zero_copy_only=False)
    too_long = f"key {column.name}: longer than {LONGEST_KEY} bytes, more than Harper takes"
    lost = (
        f"key {column.name}: {UNITS} or more characters with one of U+0000 to U+0004 among them:"
        " Harper would store the row and not find it again by its time"
    )
    return ids, (
        *faults,
        *fault_if(sizes == 0, f"key {column.name}: empty"),
        *fault_if(sizes > LONGEST_KEY, too_long),
        *fault_if(_are_lost(ids, sizes), lost),
    )


def _are_lost(ids: pa.Array, sizes: np.ndarray) -> Bools:
    """Says which ids Harper's indexes would not find; few ids need more than the first test."""
    lost = np.zeros(len(ids), np.bool_)
    if not (sizes >= UNITS).any():
        return lost
    unescaped = pc.fill_null(pc.match_substring_regex(ids, UNESCAPED), False)
    for row in np.flatnonzero(unescaped.to_numpy(zero_copy_only=False) & (sizes >= UNITS)):
        lost[row] = is_lost(ids[row].as_py())
    return lost
