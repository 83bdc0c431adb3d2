"""Gives some rows the faults that real tables have and tidy samples lack, in exact counts."""

from dataclasses import astuple, dataclass, field, fields
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bq_harper_assets.errors import BqhError
from bq_harper_assets.maritime import chance

# Each is a position in Disorder plus one; 0 is a row without a fault.
LATE, TIE, DUPLICATE, UPDATE, MOVE, DELETE, NULL, FUTURE = range(1, 9)


class DisorderTooLarge(BqhError):
    """More rows were to be disordered than there are rows to pick from."""


def _rows(that: str) -> Any:
    return field(default=0, metadata={"rows that": that})


@dataclass(frozen=True, kw_only=True)
class Disorder:
    """Disorder says how many rows get each fault.

    A value below 1 is a share of the rows; from 1 on it is a number of rows (in `start`, of each
    batch).
    """

    late: float = _rows("arrive in a later load than their neighbours")
    ties: float = _rows("have the timestamp of another vessel's row")
    duplicates: float = _rows("are there twice, equal in every column")
    updates: float = _rows("are changed after the load, timestamp kept")
    moves: float = _rows("are changed after the load, to a timestamp 3 hours earlier")
    deletes: float = _rows("are deleted after the load")
    nulls: float = _rows("have no timestamp")
    futures: float = _rows("have a timestamp a year ahead")

    def counts(self, rows: int, lap: int) -> tuple[int, ...]:
        """Returns how many rows of a lap get each fault; over many laps a share is exact."""
        wanted = tuple(
            int(value)
            if value >= 1
            # 1e-6 is added as 0.07 * 100 is a bit over 7 in binary, 0.29 * 100 a bit under 29.
            else floor((lap + 1) * value * rows + 1e-6) - floor(lap * value * rows + 1e-6)
            for value in astuple(self)
        )
        if sum(wanted) > rows // 2:
            parts = ", ".join(
                f"{n} {kind.name}" for n, kind in zip(wanted, fields(self), strict=True) if n
            )
            raise DisorderTooLarge(
                f"of {rows:,} rows at most half ({rows // 2:,}) can be disordered, and {parts} were"
                " asked for. Nothing was written; ask for fewer, or for more rows."
            )
        return wanted

    def kinds(self, seed: int, rows: int, number: NDArray[np.int64]) -> NDArray[np.int8]:
        """Returns the fault of each row, by its number; a row has at most one.

        A lap is `rows` long. Only the first of each pair of rows is ever picked. The second stays
        as it is: a tie has a partner, and the last row of a lap says that the lap was loaded.
        """
        kinds = np.zeros(len(number), dtype=np.int8)
        if not any(astuple(self)):
            return kinds
        for lap in np.unique(number // rows):
            place = number % rows
            here = (number // rows == lap) & (place % 2 == 0) & (place < rows // 2 * 2)
            edges = np.cumsum(self.counts(rows, int(lap)))
            turn = int(chance.bits(seed, "disorder of lap", [lap])[0] >> np.uint64(33))
            pair = place[here] // 2
            rank = (chance.shuffle(pair, rows // 2, seed, "disorder") + turn) % (rows // 2)
            kind = np.searchsorted(edges, rank, side="right") + 1
            kinds[here] = np.where(kind <= len(edges), kind, 0)
        return kinds


ORDERLY = Disorder()
