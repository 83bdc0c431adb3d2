"""Plays random histories again: python -m bq_harper_assets_tests.history.replay 7 [UNTIL]"""

import logging
import sys
import tempfile
from collections import Counter
from pathlib import Path

from bq_harper_assets_tests.history.chance import play
from bq_harper_assets_tests.history.mutations import running_servers
from bq_harper_assets_tests.history.watch import Violation


def main(first: int, until: int) -> int:
    """Of all seeds in between; 1, with what happened, at the first that fails."""
    logging.disable(logging.CRITICAL)
    counts: Counter[str] = Counter()
    with running_servers() as servers, tempfile.TemporaryDirectory() as folder:
        for seed in range(first, until):
            try:
                play(servers, Path(folder), seed, counts)
            except Violation as violation:
                print(violation)
                return 1
            print(f"seed {seed}: no violation", flush=True)
    for kind, count in sorted(counts.items()):
        print(f"{count:6} {kind}")
    return 0


if __name__ == "__main__":
    first, *until = (int(each) for each in sys.argv[1:])
    sys.exit(main(first, *(until or [first + 1])))
