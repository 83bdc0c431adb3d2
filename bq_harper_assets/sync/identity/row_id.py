"""A row's id says which row it is; the row gets the same id each time it is read."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
from bq_harper_assets.sync.identity.faults import RowFault
from bq_harper_assets.sync.identity.row_hash import row_hashes

if TYPE_CHECKING:
    from bq_harper_assets.sync.protocols import RowLayout

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


def identify(
    batch: pa.RecordBatch, layout: "RowLayout", numbers: pa.Array | None = None
) -> Identity:
    """Gives each row its id and hashes.

    `numbers` count the equal rows of a keyless table over their whole window, from 0.
    """
    hashes = row_hashes(batch, layout.names)
    if not layout.key:
        content = hashes_of_ids(batch, layout, hashes)
        ids, faults = _keyless(batch.column(layout.timestamp), content, numbers)
    elif (of_key := layout.ids_of_key(batch)) is not None:
        ids, faults = of_key
    else:
        ids, faults = _hashed(batch, layout.key)
    if faults:
        faulty = np.logical_or.reduce([fault.rows for fault in faults])
        ids = pc.if_else(pa.array(faulty), pa.scalar(None, ids.type), ids)
    return Identity(ids, id_hashes(ids, keyless=not layout.key), hashes, faults)


def hashes_of_ids(batch: pa.RecordBatch, layout: "RowLayout", hashes: UInt64s) -> UInt64s:
    """Returns the hashes that ids of rows without a key are made of.

    These are `hashes` unless columns came after the first sync: ids do not depend on such columns.
    """
    part = layout.what_ids_are_made_of(batch)
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


def _hashed(batch: pa.RecordBatch, key: tuple[str, ...]) -> tuple[pa.Array, tuple[RowFault, ...]]:
    faults = [fault for name in key for fault in null_keys(plain(batch.column(name)), name)]
    high, low = (row_hashes(batch, key, lane=lane) for lane in (0, 1))
    return text_of_width(base32_of_128(high, low), None), tuple(faults)


def null_keys(array: pa.Array, name: str) -> tuple[RowFault, ...]:
    """Returns the fault of rows whose key has a NULL; nothing if there is no such row."""
    nulls = null_mask(array)
    return () if nulls is None else (RowFault(nulls, f"key {name}: NULL"),)
