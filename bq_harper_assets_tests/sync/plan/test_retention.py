"""Rows that the source deletes by age are no loss, whatever their window shows of their age."""

from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any

import pytest

from bq_harper_assets.stores.harper.target import HarperTarget
from bq_harper_assets.sync.phases import Phase
from bq_harper_assets.sync.plan.cell_work import CellWork, Vanished
from bq_harper_assets.sync.plan.retention import younger_than_retention
from bq_harper_assets.sync.turn_context import TurnContext, TurnSource
from bq_harper_assets_tests.sync.memory_source import DAY, HOUR, MemoryPin, Small

IDS = [1, 2, 3]
NOBODY: Any = None


def younger(small: Small, t: datetime, older_than: str | None = "24h", ids: Any = IDS) -> list[int]:
    """Of the rows that are gone from hour 1, which are at minutes 10, 20 and 30."""
    small.declare(slices=1, deletes_older_than=older_than)
    rows = [{"id": n, "n": n, "ts": f"2026-01-05T01:{10 * n}:00.000000Z"} for n in IDS]
    small.harper.make("Ships", *rows)
    contract = small.route.contract
    pin = MemoryPin(small.source, small.source.planned(contract), t)
    target = HarperTarget(contract, small.harper.client())
    cut = small.route.cut
    source = TurnSource(contract=contract, cut=cut, pin=pin, target=target, spark=NOBODY)
    turn = TurnContext(
        source=source,
        ledger=small.ledger,
        table=NOBODY,
        keeper=NOBODY,
        start=0,
        phase=Phase.STEADY,
        until_end=ExitStack(),
    )
    [cell] = small.cells(1)
    work = CellWork(cell=cell, batch=NOBODY, rows=0, vanished=Vanished(list(ids)))
    return list(younger_than_retention(turn, work))


def test_without_a_declared_age_every_row_is_a_loss(small: Small) -> None:
    assert younger(small, DAY + 100 * HOUR, None) == IDS
    assert small.harper.asked == []


@pytest.mark.parametrize(
    ("at", "lost", "asks"),
    [
        (25 * HOUR, [1, 2, 3], False),  # the window begins at the boundary
        (25 * HOUR + timedelta(minutes=10), [1, 2, 3], True),
        (25 * HOUR + timedelta(minutes=20), [2, 3], True),
        (25 * HOUR + timedelta(minutes=31), [], True),
        (26 * HOUR, [], False),  # the window ends at the boundary
        (10 * HOUR, [1, 2, 3], False),
        (99 * HOUR, [], False),
    ],
)
def test_rows_are_asked_for_their_times_only_if_their_window_does_not_tell(
    small: Small, at: timedelta, lost: list[int], asks: bool
) -> None:
    assert younger(small, DAY + at) == lost
    assert bool(small.harper.asked) is asks


def test_of_no_row_nothing_is_asked(small: Small) -> None:
    assert younger(small, DAY + 25 * HOUR + timedelta(minutes=10), ids=[]) == []
    assert small.harper.asked == []
