"""A row's id in Harper says which row it is; the row gets the same id each time it is read."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bq_harper_assets.schema.harper_types import Form, HarperColumn
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.harper.index_keys import UNESCAPED, UNITS, is_lost
from bq_harper_assets.sync.arrays.arrow_memory import (
    Bools,
    UInt64s,
    fixed_width,
    null_mask,
    plain,
    text_of_width,
)
from bq_harper_assets.sync.arrays.base32 import base32, base32_of_128, number_of
from bq_harper_assets.sync.cells.slicing import KEYLESS_LENGTH, id_hashes
from bq_harper_assets.sync.cells.window import micros_of
from bq_harper_assets.sync.identity.row_hash import row_hashes
from bq_harper_assets.sync.values.column_values import TEXTS
from bq_harper_assets.sync.values.exact_integers import exceeds_safe_integer
from bq_harper_assets.sync.values.faults import RowFault, fault_if
from bq_harper_assets.sync.values.row_plan import RowPlan

LONGEST_KEY = 1978  # bytes; Harper answers 500 to a longer one
_FIRST_YEAR = 62_135_596_800_000  # milliseconds from 0001-01-01 to 1970
_HASH_CHARACTERS = 13


@dataclass(frozen=True, eq=False)
class Identity:
    """The identity of a batch is the ids, id hashes and row hashes of its rows.

    A row that can have no id has NULL as its id, and a fault that says why.
    """

    ids: pa.Array
    id_hashes: UInt64s
    row_hashes: UInt64s
    faults: tuple[RowFault, ...] = ()

    @property
    def whole_id_hashes(self) -> UInt64s:
        """Returns id hashes that include the occurrence number: those of equal rows differ."""
        return id_hashes(self.ids, keyless=False)

    def where(self, rows: Bools) -> "Identity":
        """Returns the identity of these rows only."""
        faults = tuple(RowFault(fault.rows[rows], fault.reason) for fault in self.faults)
        ids = self.ids.filter(pa.array(rows))
        return Identity(ids, self.id_hashes[rows], self.row_hashes[rows], faults)


def identify(batch: pa.RecordBatch, plan: RowPlan, numbers: pa.Array | None = None) -> Identity:
    """Gives each row its id and hashes.

    `numbers` count the equal rows of a keyless table over their whole window, from 0.
    """
    hashes = row_hashes(batch, plan.names)
    if not plan.key:
        content = hashes_of_ids(batch, plan, hashes)
        ids, faults = _keyless(batch.column(plan.timestamp), content, numbers)
    elif (column := plan.id_column) is not None:
        ids, faults = _stored(plain(batch.column(column.name)), column)
    else:
        ids, faults = _hashed(batch, plan.key)
    if faults:
        faulty = np.logical_or.reduce([fault.rows for fault in faults])
        ids = pc.if_else(pa.array(faulty), pa.scalar(None, ids.type), ids)
    return Identity(ids, id_hashes(ids, keyless=not plan.key), hashes, faults)


def hashes_of_ids(batch: pa.RecordBatch, plan: RowPlan, hashes: UInt64s) -> UInt64s:
    """Returns the hashes that ids of rows without a key are made of.

    These are `hashes` unless columns came after the first sync: ids do not depend on such columns.
    """
    part = plan.what_ids_are_made_of(batch)
    return hashes if part is None else row_hashes(part)


def hash_text(hashes: UInt64s) -> pa.StringArray:
    """Writes row hashes as they are stored, in 13 characters."""
    return text_of_width(base32(hashes, _HASH_CHARACTERS), None)


def hashes_of_text(texts: pa.Array) -> UInt64s:
    """Reads the row hashes that hash_text() wrote; gives 0 for anything else."""
    return number_of(texts, _HASH_CHARACTERS)


def _keyless(
    timestamps: pa.Array, hashes: UInt64s, numbers: pa.Array | None
) -> tuple[pa.Array, tuple[RowFault, ...]]:
    """Makes ids that begin with the time, so that rows written together are stored together."""
    micros = micros_of(timestamps)
    nulls = null_mask(micros)
    millis = fixed_width(micros, np.int64) // 1000 + _FIRST_YEAR
    characters = np.empty((len(hashes), KEYLESS_LENGTH), np.uint8)
    characters[:, :-_HASH_CHARACTERS] = base32(
        millis.astype(np.uint64), KEYLESS_LENGTH - _HASH_CHARACTERS
    )
    characters[:, -_HASH_CHARACTERS:] = base32(hashes, _HASH_CHARACTERS)
    ids = text_of_width(characters, None)
    if numbers is not None:
        suffix = pc.binary_join_element_wise("-", pc.cast(numbers, pa.string()), "")
        ids = pc.binary_join_element_wise(ids, pc.if_else(pc.equal(numbers, 0), "", suffix), "")
    return ids, () if nulls is None else (RowFault(nulls, "the timestamp is NULL"),)


def _stored(array: pa.Array, column: HarperColumn) -> tuple[pa.Array, tuple[RowFault, ...]]:
    faults = _null_keys(array, column.name)
    if column.kind is Kind.INT64:
        if column.form is Form.TEXT:
            return pc.cast(array, pa.string()), faults
        beyond = f"key {column.name}: beyond 2^53; values.int64: string keeps it as text"
        return array, (*faults, *fault_if(exceeds_safe_integer(array), beyond))
    ids = TEXTS[column.kind](array) if column.kind in TEXTS else array
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


def _hashed(batch: pa.RecordBatch, key: tuple[str, ...]) -> tuple[pa.Array, tuple[RowFault, ...]]:
    faults = [fault for name in key for fault in _null_keys(plain(batch.column(name)), name)]
    high, low = (row_hashes(batch, key, lane=lane) for lane in (0, 1))
    return text_of_width(base32_of_128(high, low), None), tuple(faults)


def _null_keys(array: pa.Array, name: str) -> tuple[RowFault, ...]:
    nulls = null_mask(array)
    return () if nulls is None else (RowFault(nulls, f"key {name}: NULL"),)
