"""A key range is a half-open range of keys; those of a cut are numbered and leave no key out."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bq_harper_assets.sync.arrays.arrow_memory import plain


class KeyOrder(StrEnum):
    """A key order is how a source compares its keys; bounds and rows are compared the same way."""

    NUMBERS = "numbers"  # whole numbers, by value
    BYTES = "bytes"  # texts, by their bytes in UTF-8


_COMPARED_AS = {KeyOrder.NUMBERS: pa.int64(), KeyOrder.BYTES: pa.binary()}


@dataclass(frozen=True, order=True)
class KeyRange:
    """A key range has the keys from `low` on that are below `high`; None is an open end."""

    number: int  # among the ranges of its cut, from 0 on
    low: str | None
    high: str | None

    @property
    def axis_start(self) -> int:
        """Returns the number of the range."""
        return self.number

    @property
    def axis_end(self) -> int:
        """Returns the number of the next range."""
        return self.number + 1

    @property
    def key(self) -> str:
        """Returns the bounds of the range, such as 1000..2000, or ..1000 for the first range."""
        return f"{self.low or ''}..{self.high or ''}"

    @property
    def options(self) -> str:
        """Returns nothing: commands name a table that is cut by key as a whole."""
        return ""


@dataclass(frozen=True)
class KeyCut:
    """A key cut divides rows into key ranges by the first column of their key.

    A key never changes: a row with another key is another row. So rows do not move, and each range
    is closed from the beginning.
    """

    bounds: tuple[str, ...]  # between the ranges, ascending: one less than there are ranges
    order: KeyOrder

    def __post_init__(self) -> None:
        edges = self._edges
        if len(edges) > 1 and not pc.all(pc.less(edges[:-1], edges[1:])).as_py():
            raise ValueError(f"the bounds of key ranges must ascend: {', '.join(self.bounds)}")

    @property
    def rows_move(self) -> bool:
        """Says that a row stays in its range."""
        return False

    @property
    def follows_time(self) -> bool:
        """Says that no range waits for a time to pass."""
        return False

    @property
    def ranges(self) -> tuple[KeyRange, ...]:
        """Returns all ranges, in order."""
        return tuple(map(self.range_at, range(len(self.bounds) + 1)))

    def range_at(self, value: int) -> KeyRange:
        """Returns the range with this number."""
        if not 0 <= value <= len(self.bounds):
            raise ValueError(f"there is no key range {value} of {len(self.bounds) + 1}")
        low = self.bounds[value - 1] if value else None
        return KeyRange(value, low, self.bounds[value] if value < len(self.bounds) else None)

    def axis_values(
        self, batch: pa.RecordBatch, timestamp: str, key: Sequence[str]
    ) -> pa.Int64Array:
        """Returns the number of each row's range; a row without a key is in the first one."""
        edges = self._edges
        keys = plain(batch.column(key[0])).cast(edges.type)
        # The sort is stable: a bound comes before the keys that equal it, which it begins.
        both = pa.concat_arrays([edges, keys])
        order = pc.array_sort_indices(both, null_placement="at_start").to_numpy()
        passed = np.empty(len(both), np.int64)
        passed[order] = np.cumsum(order < len(edges))
        return pa.array(passed[len(edges) :])

    @cached_property
    def _edges(self) -> pa.Array:
        return pa.array(self.bounds, pa.string()).cast(_COMPARED_AS[self.order])
