"""Random histories of every kind of table, until all that can happen has happened."""

from collections import Counter
from pathlib import Path

import pytest

from bq_harper_assets_tests.history.chance import play
from bq_harper_assets_tests.history.script import SETTINGS, Script, check_script
from bq_harper_assets_tests.history.stage import STOPS, killed_at
from bq_harper_assets_tests.history.world import Servers

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
