"""What a log shows while a run works: what is done now, and not one line again and again."""

import io
import time
from collections.abc import Callable

import pytest
from rich.console import Console

from bq_harper_assets.activity import doing
from bq_harper_assets.cli.commands.sync import cells_between
from bq_harper_assets.cli.output import progress_bar
from bq_harper_assets.cli.output.progress_bar import Asked, bar, lines
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.waiting import WAITS
from bq_harper_assets_tests.temporary_project import TemporaryProject, hours_ago, table


@pytest.fixture
def asked(serverless: TemporaryProject) -> Asked:
    """Cells that no run works on."""
    start = hours_ago(3)
    declared = serverless.declare(table(TableRef("p", "sea", "ships"), start))
    [ships] = declared.tables
    cells = cells_between(ships, start, None, None, None)
    return Asked(
        contract=ships, cells=cells, since=start, ledger=declared.ledger, harper=declared.harper
    )


def test_a_line_says_what_is_done_now_and_how_far_it_is(asked: Asked) -> None:
    said: list[str] = []
    with (
        doing("writing check results", total=4112) as step,
        lines("syncing", asked, said.append, every_s=0.01),
    ):
        step.advance(2310)
        _wait_for(lambda: "writing check results, 2,310 of 4,112" in said[-1])
    cells = f"syncing: 0 of {len(asked.cells)} cells done"
    assert said[0] == f"{cells}; writing check results, 0 of 4,112"
    assert said[-1] == f"{cells}; writing check results, 2,310 of 4,112"


def test_another_step_is_told_at_once_and_not_at_the_next_half_minute(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_bar, "STEP_AFTER_S", 0.0)
    monkeypatch.setattr(progress_bar, "_LOOK_EVERY_S", 0.01)
    said: list[str] = []
    with lines("syncing", asked, said.append, every_s=3600.0):
        with doing("waits for run 9f56 on host-7"):
            _wait_for(lambda: len(said) == 2)
            time.sleep(0.2)
        with doing("moving 6 cells"):
            _wait_for(lambda: len(said) == 3)
    assert [line.partition("; ")[2] for line in said] == [
        "",
        "waits for run 9f56 on host-7",
        "moving 6 cells",
    ]


def test_what_a_run_waits_for_is_told_in_a_terminal_too(asked: Asked) -> None:
    said: list[str] = []
    with (
        lines("syncing", asked, said.append, every_s=3600.0),
        WAITS.waiting("run 9f56 on host-7", "goes on by itself", at_once=True),
    ):
        _wait_for(lambda: len(said) == 2)
    assert said[1].startswith("waits for run 9f56 on host-7, since ")
    assert said[1].endswith("; goes on by itself")
    terminal = io.StringIO()
    with (
        bar("syncing", asked, Console(file=terminal, force_terminal=True, width=200)),
        WAITS.waiting("run 9f56 on host-7", "goes on by itself", at_once=True),
    ):
        _wait_for(lambda: "waits for run 9f56 on host-7, since " in terminal.getvalue())


def _wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to that within 20 s"
        time.sleep(0.05)
