"""Which windows a look compares, those of the horizon and the scrub's; and what is due."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import CellKey, Mode, Wanted
from bq_harper_assets.sync.cells.window import Window, windows_between
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets.sync.revisit.due_cells import Reason
from bq_harper_assets.sync.revisit.horizon import horizon, scrub_part, standing
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


def test_cells_of_a_run_that_has_ended_are_due_while_its_lease_and_another_run_go_on(
    tmp_path: Path,
) -> None:
    orders = contract(slices=2)
    with open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        known = ledger.register_route(table_facts(orders, "p"))
        ledger.record_schema(known, {"columns": []}, 0)
        key = CellKey.of_window(START, START + orders.window, 0)
        for cell, run_id in ((key, "ended"), (replace(key, slice=1), "works")):
            leases = ledger.acquire(known, [cell.slice], run_id, timedelta(minutes=1))
            wanted = [Wanted(cell=cell, mode=Mode.COPY, fingerprint="fp")]
            ledger.plan(leases, ledger.now(), 1, wanted, run_id)
        closed = START + orders.window + orders.safety_lag
        stands = standing(ledger, orders, START, closed, ended={"ended"})
        assert [(due.cell.slice, due.reason) for due in stands.due] == [(0, Reason.PLANNED_LEFT)]
        assert stands.at_work == {replace(key, slice=1): "works"}
        assert standing(ledger, orders, START, closed).due == ()
