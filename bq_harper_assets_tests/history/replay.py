"""Plays random histories again.

python -m bq_harper_assets_tests.history.replay 7                  the history of that number
python -m bq_harper_assets_tests.history.replay 7 40               all from 7 to 39
python -m bq_harper_assets_tests.history.replay '7: go1 change2!'  as a failure has printed it
"""

import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from bq_harper_assets_tests.history.chance import play
from bq_harper_assets_tests.history.mutations import running_servers
from bq_harper_assets_tests.history.script import Script, drawn


def main(scripts: Iterable[Script]) -> int:
    """1, with what happened, at the first that fails."""
    logging.disable(logging.CRITICAL)
    counts: Counter[str] = Counter()
    with running_servers() as servers, tempfile.TemporaryDirectory() as folder:
        for script in scripts:
            try:
                play(servers, Path(folder), script, counts)
            except AssertionError as error:
                print(error, *error.__notes__, sep="\n")
                return 1
            print(f"history {script.number}: no violation", flush=True)
    for kind, count in sorted(counts.items()):
        print(f"{count:6} {kind}")
    return 0


def chosen(first: str, until: str = "") -> Iterable[Script]:
    """By number, or told whole."""
    if ":" in first:
        return [Script.parse(first)]
    return map(drawn, range(int(first), int(until or int(first) + 1)))


if __name__ == "__main__":
    sys.exit(main(chosen(*sys.argv[1:])))
