"""A fault says which rows cannot be stored as they are, and why."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bq_harper_assets.sync.arrays.arrow_memory import Bools, Int64s


@dataclass(frozen=True, eq=False)
class RowFault:
    """A row fault is a reason why rows cannot be stored, and the rows to which it applies."""

    rows: Bools
    reason: str

    def of_lists(self, offsets: Int64s) -> "RowFault":
        """Returns the fault for the lists whose elements these rows are."""
        faulty = np.zeros(len(self.rows) + 1, np.int64)
        np.cumsum(self.rows, out=faulty[1:])
        return RowFault(faulty[offsets[1:]] > faulty[offsets[:-1]], self.reason)


def fault_if(rows: Bools, reason: str) -> tuple[RowFault, ...]:
    """Returns the fault of these rows; nothing if there is no such row."""
    return (RowFault(rows, reason),) if rows.any() else ()


def reasons_of(faults: Sequence[RowFault], count: int) -> pa.StringArray:
    """Joins all reasons against each row to one text; NULL means that the row has none."""
    reasons = pa.nulls(count, pa.string())
    for fault in faults:
        more = pc.binary_join_element_wise(reasons, fault.reason, "; ")
        both = pc.if_else(reasons.is_null(), fault.reason, more)
        reasons = pc.if_else(pa.array(fault.rows), both, reasons)
    return reasons
