"""Cells, windows times slices: the unit of record."""

import re
from dataclasses import dataclass
from datetime import timedelta

from bq_harper_assets.sync.cells.window import Window

_SLICE = re.compile(r"s(\d{2,})")


@dataclass(frozen=True, order=True)
class Cell:
    """One window of one slice."""

    window: Window
    slice: int

    @property
    def key(self) -> str:
        """Its Dagster partition: 2026-11-16T07:00|s02."""
        return f"{self.window.key}|{slice_key(self.slice)}"

    @classmethod
    def parse(cls, key: str, length: timedelta) -> "Cell":
        """The cell of this key; ValueError if there is none with windows of this length."""
        window, _, part = key.partition("|")
        if not (match := _SLICE.fullmatch(part)) or slice_key(int(match[1])) != part:
            raise ValueError(f"{key!r} does not name a cell such as 2026-11-16T07:00|s02")
        return cls(Window.parse(window, length), int(match[1]))


def slice_key(number: int) -> str:
    """A slice's Dagster partition: s02."""
    return f"s{number:02}"
