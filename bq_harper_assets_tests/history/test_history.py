"""Random histories of sources, runs, faults and crashes: the protocol holds after every write."""

from collections import Counter
from pathlib import Path

import pytest

from bq_harper_assets_tests.history.chance import STOPS, play
from bq_harper_assets_tests.history.world import Servers

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]
SEEDS = range(8)
KINDS = {
    *("row inserted", "row doubled", "row changed", "row moved", "row deleted", "row comes back"),
    *("row as it was before", "bad row", "window emptied"),
    *("time NULL", "time before the start", "time in the future", "time in a cell that was not"),
    "time in a cell that was committed",  # late
    *("mode copy", "mode number", "mode reconcile", "mode topup", "cell committed"),
    *("request answered", "request unanswered", "request lost", "request late"),
    *("a row moved away", "a row moved here", "refused by the guard"),
    *("run stalled", "lease taken over", "task tried twice"),
}


def test_whatever_happens_no_clean_cell_is_wrong_and_in_the_end_all_is_equal(
    servers: Servers, tmp_path: Path, quiet: None
) -> None:
    """A failure prints its seed and what happened; the same seed fails again."""
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        play(servers, tmp_path, seed, counts)
    print(f"{len(SEEDS)} histories:")
    for kind, count in sorted(counts.items()):
        print(f"{count:6} {kind}")
    assert not KINDS - set(counts)
    assert len([stop for stop in STOPS if counts[f"killed at {stop!r}"]]) > len(STOPS) // 2
