"""Random histories of sources, runs, faults and crashes: the protocol holds after every write."""

from collections import Counter
from pathlib import Path

import pytest

from bq_harper_assets_tests.history.chance import play
from bq_harper_assets_tests.history.script import (
    SETTINGS,
    STOPS,
    Script,
    check_script,
    drawn,
)
from bq_harper_assets_tests.history.watch import Violation
from bq_harper_assets_tests.history.world import Servers

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]
KINDS = {
    *("row inserted", "row doubled", "row changed", "row moved", "row deleted", "row comes back"),
    *("row as it was before", "bad row", "window emptied"),
    *("time NULL", "time before the start", "time in the future", "time in a cell that was not"),
    "time in a cell that was committed",  # late
    *("mode copy", "mode number", "mode reconcile", "mode topup", "cell committed"),
    *("top-up of a keyed table", "top-up of a keyless table", "commit of a keyless table in 2"),
    *("row kept", "row flagged", "row not flagged any more"),
    *("request answered", "request unanswered", "request lost", "request late"),
    *("a row moved away", "a row moved here", "refused by the guard"),
    *("run stalled", "lease taken over", "task tried twice"),
}


def test_whatever_happens_no_clean_cell_is_wrong_and_in_the_end_all_is_equal(
    servers: Servers, tmp_path: Path, quiet: None
) -> None:
    """A failure prints a short history that fails too, and how to play it again."""
    counts: Counter[str] = Counter()

    def holds(script: Script) -> None:
        play(servers, tmp_path, script, counts)

    for number in range(len(SETTINGS)):
        check_script(number, holds)
    print(f"{len(SETTINGS)} histories:")
    for kind, count in sorted(counts.items()):
        print(f"{count:6} {kind}")
    assert not [kind for kind in KINDS if not counts[kind]]
    assert len([stop for stop in STOPS if counts[f"killed at {stop!r}"]]) > len(STOPS) // 2


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
