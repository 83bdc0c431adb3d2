"""The cells of a table become Dagster partitions, and partition keys become cells."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from dagster import (
    MultiPartitionsDefinition,
    PartitionKeyRange,
    StaticPartitionsDefinition,
    TimeWindowPartitionsDefinition,
)

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.sync.cells.cell import Cell, slice_key
from bq_harper_assets.sync.cells.window import Window, windows_between

# Dagster orders dimensions by name; these names put the window first in every key.
WINDOW_DIMENSION, SLICE_DIMENSION = "time_window", "worker_slice"
KEY_FORMAT = "%Y-%m-%dT%H:%M"
RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"


class CellPartitions(MultiPartitionsDefinition):
    """These partitions remember the keys of a run's range: Dagster asks for them each time."""

    _newest: tuple[PartitionKeyRange, Sequence[Any]] | None = None

    def get_partition_keys_in_range(
        self, partition_key_range: PartitionKeyRange, *others: Any, **named: Any
    ) -> Sequence[Any]:
        """Lists all keys of the rectangle, window by window."""
        if self._newest is None or self._newest[0] != partition_key_range:
            keys = super().get_partition_keys_in_range(partition_key_range, *others, **named)
            self._newest = (partition_key_range, tuple(keys))
        return self._newest[1]


def build_partitions(contract: TableContract, start: datetime) -> MultiPartitionsDefinition:
    """Builds windows from `start` on, times the slices; of a live table also the open window."""
    return CellPartitions(
        {
            WINDOW_DIMENSION: TimeWindowPartitionsDefinition(
                start=start,
                cron_schedule=window_cron(contract.window),
                fmt=KEY_FORMAT,
                end_offset=1 if contract.live else 0,
            ),
            SLICE_DIMENSION: StaticPartitionsDefinition(
                [slice_key(number) for number in range(contract.slices)]
            ),
        }
    )


def window_cron(window: timedelta) -> str:
    """Says in cron's words when a window of this length ends and the next begins."""
    minutes = window // timedelta(minutes=1)
    if minutes == 24 * 60:
        return "0 0 * * *"
    return "0 * * * *" if minutes == 60 else f"*/{minutes} * * * *"


def cells_of(contract: TableContract, keys: Iterable[str]) -> list[Cell]:
    """Reads the cells of these partition keys."""
    return [Cell.parse(str(key), contract.window) for key in keys]


def range_tags(cells: Sequence[Cell]) -> dict[str, str]:
    """Gives the tags of a run over the rectangle that these cells span."""
    first = Cell(min(cell.window for cell in cells), min(cell.slice for cell in cells))
    last = Cell(max(cell.window for cell in cells), max(cell.slice for cell in cells))
    return {RANGE_START: first.key, RANGE_END: last.key}


def newest_closed(contract: TableContract, now: datetime) -> Window:
    """Gives the last window that no row should arrive in any more."""
    closed = now.astimezone(UTC) - contract.safety_lag
    *_, newest = windows_between(closed - 2 * contract.window, closed, contract.window)
    return newest if newest.end <= closed else Window(newest.start - contract.window, newest.start)
