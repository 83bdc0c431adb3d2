"""A row that only the target has in a cell is gone from the source or in another window there.

It is so with a time cut alone: where rows do not move, every such row is gone.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from bq_harper_assets.instants import micros_at
from bq_harper_assets.sync.plan.cell_work import LaterRow, Vanished
from bq_harper_assets.sync.protocols import KeyValues, PinnedSource, Target

KEYS_AT_ONCE = 5_000  # that a source is asked for again


def find_vanished(pin: PinnedSource, target: Target, start: int, ids: Sequence[Any]) -> Vanished:
    """Separates rows that are gone from the source from rows that are in another window at T.

    A row without a key is gone. A row with a key is looked up in all windows from `start`. If its
    time is NULL, before the start or after T, no window has it, so that it is gone too.
    """
    if not pin.plan.selection.key or not ids:
        return Vanished(list(ids))
    elsewhere = _in_windows(times_of_rows(pin, target, ids), start, micros_at(pin.t))
    return Vanished([row_id for row_id in ids if row_id not in elsewhere], elsewhere)


def find_later(
    pin: PinnedSource, target: Target, start: int, ids: Sequence[Any], keep: ExitStack
) -> dict[Any, LaterRow]:
    """Runs a contract's query again for rows that its kept result of some windows does not have.

    The new result is kept too, until `keep` is closed: the rows are then written as they are in it.
    """
    if not pin.plan.selection.key or not ids:
        return {}
    # Most keys return no row, so the cheap query for their times comes before the one for rows.
    there = list(_times(pin, target, ids, pin.times_of_keys_now))
    found: dict[Any, LaterRow] = {}
    for first in range(0, len(there), KEYS_AT_ONCE):
        some = there[first : first + KEYS_AT_ONCE]
        keys = [key for key in target.keys_of(pin.plan, some) if key is not None]
        again = keep.enter_context(pin.asked_again(keys))
        in_windows = _in_windows(times_of_rows(again, target, some), start, micros_at(again.t))
        found |= {row_id: LaterRow(micros, again) for row_id, micros in in_windows.items()}
    return found


def _in_windows(times: Mapping[Any, int | None], first: int, last: int) -> dict[Any, int]:
    return {i: time for i, time in times.items() if time is not None and first <= time <= last}


def times_of_rows(pin: PinnedSource, target: Target, ids: Sequence[Any]) -> dict[Any, int | None]:
    """Returns the time of each row in the source at T, in microseconds, without rows it lacks."""
    return _times(pin, target, ids, pin.times_of_keys)


def _times(
    pin: PinnedSource,
    target: Target,
    ids: Sequence[Any],
    ask: Callable[[Sequence[KeyValues]], Mapping[int, int | None]],
) -> dict[Any, int | None]:
    keys = target.keys_of(pin.plan, ids)
    known = [row_id for row_id, key in zip(ids, keys, strict=True) if key is not None]
    times = ask([key for key in keys if key is not None])
    return {known[at]: time for at, time in times.items()}
