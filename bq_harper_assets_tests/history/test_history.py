"""Random histories of sources, runs, faults and crashes: the protocol holds after every write."""

from collections import Counter
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
KINDS = {
    *("row inserted", "row doubled", "row changed", "row moved", "row deleted", "row comes back"),
    *("row as it was before", "bad row", "window emptied"),
    *("time NULL", "time before the start", "time in the future", "time in a cell that was not"),
    *("time in a cell that was committed", "row late"),
    *("mode copy", "mode number", "mode reconcile", "mode topup", "cell committed"),
    *("top-up of a keyed table", "top-up of a keyless table", "commit of a keyless table in 2"),
    *("row kept", "row flagged", "row not flagged any more"),
    *("upsert answered", "upsert unanswered", "upsert lost", "upsert late"),
    *("delete answered", "delete unanswered", "delete lost", "delete late"),
    *("a row moved away", "a row moved here", "refused by the guard"),
    *("run stalled", "lease taken over", "task tried twice"),
    *(killed_at(stop) for stop in STOPS),
}
# What the first have missed by chance, others may show.
MOST_HISTORIES = 2 * len(SETTINGS)


def test_whatever_happens_no_clean_cell_is_wrong_and_in_the_end_all_is_equal(
    servers: Servers, tmp_path: Path, quiet: None
) -> None:
    """A failure prints a short history that fails too, and how to play it again."""
    counts: Counter[str] = Counter()

    def holds(script: Script) -> None:
        play(servers, tmp_path, script, counts)

    for number in range(len(SETTINGS)):
        check_script(number, holds)
    for number in range(len(SETTINGS), MOST_HISTORIES):
        if all(counts[kind] for kind in KINDS):
            break
        missed = [stop for stop in STOPS if not counts[killed_at(stop)]]
        check_script(number, holds, kill_at=missed)
    print(f"{counts['history']} histories:")
    for kind in sorted({*KINDS, *counts}):
        print(f"{counts[kind]:6} {kind}")
    assert not [kind for kind in KINDS if not counts[kind]]


def test_a_history_that_fails_is_cut_down_to_the_steps_it_fails_by() -> None:
    def fails(script: Script) -> None:
        acts = [step.act for step in script.steps]
        if "race" in acts and "kill" in acts[acts.index("race") :]:
            raise Violation(str(script))

    with pytest.raises(Violation) as failed:
        check_script(12, fails)
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
