"""Random histories of sources, runs, faults and crashes: the protocol holds after every write."""

from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets_tests.history.chance import play
from bq_harper_assets_tests.history.script import (
    SETTINGS,
    Script,
    check_script,
    drawn,
    stops_of,
)
from bq_harper_assets_tests.history.stage import STOPS, StageBroken, StagedLedger, killed_at
from bq_harper_assets_tests.history.watch import Violation
from bq_harper_assets_tests.history.world import Servers, World

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]
# Tables with and without a key, of one slice and of two, whose lost rows go, are marked or stay.
SOME = (0, 2, 5, 6)


def test_whatever_happens_no_clean_cell_is_wrong_and_in_the_end_all_is_equal(
    servers: Servers, tmp_path: Path, quiet: None
) -> None:
    """Some histories; long/test_all_histories.py plays one of each table, and more.

    A failure prints a short history that fails too, and how to play it again.
    """
    counts: Counter[str] = Counter()
    for number in SOME:
        check_script(number, lambda script: play(servers, tmp_path, script, counts))
    print(counts)
    assert counts["history"] == len(SOME)
    for mode in ("copy", "number", "reconcile", "topup"):
        assert counts[f"mode {mode}"], mode
    assert counts["cell committed"] > counts["history"]
    killed = {stop for stop in STOPS if counts[killed_at(stop)]}
    assert len(killed) >= len(SOME), killed


def test_a_history_that_fails_is_cut_down_to_the_steps_it_fails_by() -> None:
    def has_a_race_and_then_a_kill(script: Script) -> bool:
        acts = [step.act for step in script.steps]
        return "race" in acts and "kill" in acts[acts.index("race") :]

    def fails(script: Script) -> None:
        if has_a_race_and_then_a_kill(script):
            raise Violation(str(script))

    # What is drawn for a number changes with hypothesis and with the constants in our modules.
    number = next(each for each in count() if has_a_race_and_then_a_kill(drawn(each)))
    with pytest.raises(Violation) as failed:
        check_script(number, fails)
    script = Script.parse(str(failed.value))
    assert [step.act for step in script.steps] == ["race", "kill"]
    assert not any(step.is_faulty for step in script.steps)
    assert repr(script) in "".join(failed.value.__notes__)


def test_a_history_is_told_in_a_line_that_can_be_played_again() -> None:
    script = drawn(4)
    assert script == drawn(4) == Script.parse(str(script))
    assert len(script.steps) > 10
    with pytest.raises(ValueError, match="no step of a history"):
        Script.parse("4: go1 wait2")


def test_one_history_per_table_kills_at_every_stop() -> None:
    for turn in range(3):
        first = turn * len(SETTINGS)
        stops = [stop for n in range(len(SETTINGS)) for stop in stops_of(first + n)]
        assert sorted(stops) == sorted(STOPS)
    kills = drawn(4).steps[: len(stops_of(4))]
    assert tuple(STOPS[kill.chance] for kill in kills if kill.act == "kill") == stops_of(4)


def test_no_verb_changes_the_ledger_where_runs_do_not_stop(keyed: World) -> None:
    staged: Any = StagedLedger(keyed.ledger, keyed.start(keyed.cells(0, 0)), keyed._recorded)
    assert staged.identity() == keyed.ledger.identity()
    with pytest.raises(StageBroken, match="'record_audit' changes the ledger"):
        staged.record_audit(None)
