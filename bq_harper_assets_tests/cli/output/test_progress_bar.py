"""What a log shows while a run works: what is done now, and not one line again and again."""

import io
import time
from collections.abc import Callable

import pytest
from rich.console import Console

from bq_harper_assets.activity import doing, note_committed
from bq_harper_assets.cli.output import progress_bar
from bq_harper_assets.cli.output.progress_bar import bar, lines
from bq_harper_assets.retries.waiting import WAITS


def test_a_line_says_what_is_done_now_and_how_far_it_is() -> None:
    said: list[str] = []
    with (
        doing("writing check results", total=4112) as step,
        lines("syncing", 6, said.append, every_s=0.01),
    ):
        step.advance(2310)
        _wait_for(lambda: "writing check results, 2,310 of 4,112" in said[-1])
    assert said[0] == "syncing: 0 of 6 cells done; writing check results, 0 of 4,112"
    assert said[-1] == "syncing: 0 of 6 cells done; writing check results, 2,310 of 4,112"


def test_cells_count_as_done_once_they_are_committed_and_each_once() -> None:
    note_committed({"07:00|s00": 9})  # of a run before
    said: list[str] = []
    terminal = io.StringIO()
    with (
        lines("syncing", 3, said.append, every_s=0.01),
        bar("syncing", 3, Console(file=terminal, force_terminal=True, width=200)),
    ):
        note_committed({"07:00|s00": 900, "07:00|s01": 1100})
        _wait_for(lambda: said[-1] == "syncing: 2 of 3 cells done, 2,000 rows read")
        note_committed({"07:00|s01": 1101, "08:00|s00": 0})
        _wait_for(lambda: said[-1] == "syncing: 3 of 3 cells done, 2,001 rows read")
        _wait_for(lambda: "3 of 3 cells done, 2,001 rows read" in terminal.getvalue())
    assert said[0] == "syncing: 0 of 3 cells done"


def test_a_step_that_takes_long_is_told_again_with_its_time() -> None:
    said: list[str] = []
    with (
        doing("writing rows of 6 cells to Harper") as step,
        lines("syncing", 6, said.append, every_s=0.01),
    ):
        _wait_for(lambda: len(said) > 2)
        step.since -= 3725
        _wait_for(lambda: "to Harper, for 1:02:" in said[-1])
    assert said[1] == "syncing: 0 of 6 cells done; writing rows of 6 cells to Harper"


def test_another_step_is_told_at_once_and_not_at_the_next_half_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress_bar, "STEP_AFTER_S", 0.0)
    monkeypatch.setattr(progress_bar, "_LOOK_EVERY_S", 0.01)
    said: list[str] = []
    with lines("syncing", 6, said.append, every_s=3600.0):
        with doing("waits for run 9f56 on host-7"):
            _wait_for(lambda: len(said) == 2)
            time.sleep(0.2)
        with doing("moving 6 cells"):
            _wait_for(lambda: len(said) == 3)
    assert [line.partition("; ")[2].partition(", for ")[0] for line in said] == [
        "",
        "waits for run 9f56 on host-7",
        "moving 6 cells",
    ]


def test_what_a_run_waits_for_is_told_in_a_terminal_too() -> None:
    said: list[str] = []
    with (
        lines("syncing", 6, said.append, every_s=3600.0),
        WAITS.waiting("run 9f56 on host-7", "goes on by itself", at_once=True),
    ):
        _wait_for(lambda: len(said) == 2)
    assert said[1].startswith("waits for run 9f56 on host-7, since ")
    assert said[1].endswith("; goes on by itself")
    terminal = io.StringIO()
    with (
        bar("syncing", 6, Console(file=terminal, force_terminal=True, width=200)),
        WAITS.waiting("run 9f56 on host-7", "goes on by itself", at_once=True),
    ):
        _wait_for(lambda: "waits for run 9f56 on host-7, since " in terminal.getvalue())


def _wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to that within 20 s"
        time.sleep(0.05)
