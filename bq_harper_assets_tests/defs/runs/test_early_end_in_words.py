"""What a run that was stopped says of its cells."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bq_harper_assets.defs.runs.early_end import told_as_stopped
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.validation.committed import DAY, MINUTE, begun, committed, ships

CELLS = [Cell(Window(DAY + n * MINUTE, DAY + (n + 5) * MINUTE), 0) for n in (0, 5, 10)]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(empty_ledger(tmp_path / "ledger.db")) as opened:
        yield opened


def test_a_table_that_was_never_synced_has_no_cell_committed(ledger: Ledger) -> None:
    assert told_as_stopped(ledger, ships(), CELLS, "run", DAY) == (
        "stopped: 0 of 3 cells of orders are committed; the others are not, and are written again"
        " by the next run. Next: bqh sync orders"
    )


def test_cells_committed_since_the_run_began_are_counted_and_no_others(ledger: Ledger) -> None:
    known = ships()
    committed(ledger, known, 0, 5)
    since = ledger.now() + timedelta(microseconds=1)
    committed(ledger, known, 10, 20)  # the last of them was not asked for
    told = told_as_stopped(ledger, known, CELLS, "run", since)
    assert told.startswith("stopped: 1 of 3 cells of orders are committed; ")
    assert "lease" not in told
    told = told_as_stopped(ledger, known, CELLS, "run", DAY)
    assert told.startswith("stopped: 2 of 3 cells of orders are committed; ")


def test_the_next_run_has_to_wait_for_the_leases_of_this_one(ledger: Ledger) -> None:
    known = ships(slices=2)
    begun(ledger, known, 0, 5)
    route = begun(ledger, known, 5, 10, slices=[1])[0].route
    until = max(each.expires_at for each in ledger.leases(route) if each.expires_at)
    told = told_as_stopped(ledger, known, CELLS, "run", DAY)
    assert f"by the next run, which has to wait until {until:%H:%M:%S} UTC for the lease." in told
    assert "lease" not in told_as_stopped(ledger, known, CELLS, "another run", DAY)


def test_a_run_whose_cells_are_all_committed_says_that_checks_are_lacking(ledger: Ledger) -> None:
    known = ships()
    committed(ledger, known, 0, 15)
    assert told_as_stopped(ledger, known, CELLS, "run", DAY) == (
        "stopped: all 3 cells of orders are committed, and not all of them are checked."
        " Next: bqh verify orders"
    )
