"""A cell is one range of one slice: the unit in which rows are planned, moved and recorded."""

import re
from dataclasses import dataclass
from datetime import timedelta

from bq_harper_assets.sync.cells.cut import CellRange
from bq_harper_assets.sync.cells.window import Window

_SLICE = re.compile(r"s(\d{2,})")


@dataclass(frozen=True, order=True)
class Cell:
    """A cell is one window, or one key range, of one slice of a table."""

    range: CellRange
    slice: int

    @property
    def window(self) -> Window:
        """Returns the range of a cell of a table that is cut by time."""
        assert isinstance(self.range, Window)
        return self.range

    @property
    def key(self) -> str:
        """Returns what people and Dagster call the cell, such as 2026-11-16T07:00|s02."""
        return f"{self.range.key}|{slice_key(self.slice)}"

    @classmethod
    def parse(cls, key: str, length: timedelta) -> "Cell":
        """Returns the cell of a time cut; raises ValueError if no window of this length fits it."""
        window, _, slice_text = key.partition("|")
        if not (match := _SLICE.fullmatch(slice_text)) or slice_key(int(match[1])) != slice_text:
            raise ValueError(f"{key!r} does not name a cell such as 2026-11-16T07:00|s02")
        return cls(Window.parse(window, length), int(match[1]))


def slice_key(number: int) -> str:
    """Returns the Dagster partition key of a slice, such as s02."""
    return f"s{number:02}"
