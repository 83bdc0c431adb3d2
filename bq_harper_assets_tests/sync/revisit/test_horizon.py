"""Which windows a look compares: those of the horizon, and the scrub's."""

from datetime import timedelta

import pytest

from bq_harper_assets.sync.cells.window import Window, windows_between
from bq_harper_assets.sync.revisit.horizon import horizon, scrub_part
from bq_harper_assets.sync.revisit.pace import (
    look_delay,
)
from bq_harper_assets_tests.defs.test_partitions import contract
from bq_harper_assets_tests.sync.revisit.test_due_cells import HOUR, START


@pytest.mark.parametrize("window", ["5m", "15m", "60m", "1d"])
@pytest.mark.parametrize(("days", "scrub"), [(3, "1d"), (90, "7d"), (90, "365d")])
def test_a_scrub_comes_to_every_window_once_per_period(window: str, days: int, scrub: str) -> None:
    table = contract(window=window, scrub=scrub)
    until = START + timedelta(days=days)
    old = list(windows_between(START, until - timedelta(days=1), table.window))
    seen: list[Window] = []
    took = timedelta(0)
    at = None
    while len(seen) < len(old):
        part = scrub_part(table, START, until, at)
        assert part is not None
        seen += windows_between(part.begin, part.end, table.window)
        at, took = part.after, took + part.pause
        assert part.pause >= look_delay(table)
        share = look_delay(table) / table.scrub
        assert (part.end - part.begin) // table.window <= len(old) * share + 1
    assert seen == old
    assert at == START
    assert abs(took - table.scrub) < timedelta(seconds=1)


def test_every_look_holds_the_horizon_and_a_short_history_needs_no_scrub() -> None:
    table = contract(revisit="24h")
    until = START + timedelta(days=3)
    assert horizon(table, START, until) == (until - timedelta(days=1), until)
    assert horizon(table, START, START + HOUR) == (START, START + HOUR)
    assert scrub_part(table, START, START + HOUR, None) is None
    assert scrub_part(table, START, START, None) is None


def test_without_a_horizon_only_the_scrub_looks() -> None:
    table = contract(revisit="0s")
    assert horizon(table, START, START + 3 * HOUR) == (START + 3 * HOUR, START + 3 * HOUR)
    part = scrub_part(table, START, START + 3 * HOUR, None)
    assert part is not None
    assert (part.begin, part.end) == (START, START + HOUR)
