"""Measures the unit tests of the modules that decide: changes each a little; who notices it?

make mutations                                               all of it
python -m bq_harper_assets_tests.mutation --only delete_guard   modules with this in their name
"""

import argparse
import importlib
import multiprocessing
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bq_harper_assets_tests.mutation.deciders import DECIDERS, Decider
from bq_harper_assets_tests.mutation.equivalents import EQUIVALENTS
from bq_harper_assets_tests.mutation.forks import ROOT, Survivor, TestsDoNotPass, Tried, try_changes

TARGET = 0.95
MOST_EQUIVALENT = 0.05
# Imported before the first fork, because they are slow to import.
_SLOW = (
    "alembic.command dagster google.cloud.bigquery google.cloud.bigquery_storage hypothesis "
    "numpy psycopg2 pyarrow.compute pydantic pyspark.sql requests rich.console sqlalchemy.orm yaml"
)


def _try(decider: Decider, scratch: Path) -> tuple[str, Tried | str]:
    module = f"bq_harper_assets.{decider.module.replace('/', '.')}"
    tests = tuple(f"bq_harper_assets_tests/{file}.py" for file in decider.tests.split())
    left_out = frozenset(decider.fetching.split())
    try:
        tried = try_changes(module, (*tests, "-m", "unit"), ROOT, scratch, left_out)
        return decider.module, tried
    except TestsDoNotPass as error:
        return decider.module, str(error)


@dataclass(frozen=True)
class Score:
    """A score is how many of some changes the tests noticed."""

    changes: int = 0
    equivalent: int = 0
    survivors: int = 0

    @property
    def share(self) -> float:
        """Returns the noticed share of the changes that can be noticed."""
        possible = self.changes - self.equivalent
        return 1 - self.survivors / possible if possible else 1.0

    def __add__(self, other: "Score") -> "Score":
        return Score(
            self.changes + other.changes,
            self.equivalent + other.equivalent,
            self.survivors + other.survivors,
        )

    def line(self, name: str) -> str:
        """Returns the score as a line of the table."""
        noticed = self.changes - self.equivalent - self.survivors
        return f"{name:42}{self.changes:8}{noticed:9}{self.equivalent:12}{self.share:8.1%}"


def _is_equivalent(name: str, survivor: Survivor) -> bool:
    asked = (name, survivor.text, survivor.before, survivor.after)
    return any(each[:4] == asked for each in EQUIVALENTS)


def _stale(names: list[str], results: dict[str, Tried]) -> list[str]:
    """Returns what the list of equivalents says of changes that are noticed or not there."""
    alive = {
        (name, each.text, each.before, each.after)
        for name in names
        for each in results[name].survivors
    }
    return [
        f"{each.module}: {each.before!r} -> {each.after!r} in {each.line!r} is called equivalent,"
        " and is noticed, or cannot be made any more: take it out of equivalents.py"
        for each in EQUIVALENTS
        if each.module in names and each[:4] not in alive
    ]


def _tell_survivors(name: str, tried: Tried) -> None:
    print(f"{name}: {tried.changes} changes tried in {tried.seconds:.0f} s", flush=True)
    for each in tried.survivors:
        if not _is_equivalent(name, each):
            where = f"{name}.py:{each.line}"
            reached = "" if each.is_reached else "  (no test reaches it)"
            print(f"  not noticed: {where}: {each.before} -> {each.after}{reached}", flush=True)


def report(results: dict[str, Tried], minutes: float) -> bool:
    """Prints the table; returns whether the tests reach the target."""
    print(f"{'module':42}{'changes':>8}{'noticed':>9}{'equivalent':>12}{'share':>8}")
    total = Score()
    for name, tried in sorted(results.items()):
        equal = sum(_is_equivalent(name, each) for each in tried.survivors)
        score = Score(tried.changes, equal, len(tried.survivors) - equal)
        total += score
        print(score.line(name))
    print(total.line(f"in all, in {minutes:.1f} minutes"))
    stale = _stale(list(results), results)
    for line in stale:
        print(line)
    too_many = total.equivalent > MOST_EQUIVALENT * total.changes
    if too_many:
        print(f"more than {MOST_EQUIVALENT:.0%} of all changes are called equivalent")
    if total.share < TARGET:
        print(f"the target is {TARGET:.0%}")
    return total.share >= TARGET and not stale and not too_many


def _prepare() -> None:
    """Does once what every fork needs."""
    os.chdir(ROOT)
    for module in _SLOW.split():
        importlib.import_module(module)
    import hypothesis

    # What is drawn is the same every time, and a failing example is not made smaller.
    hypothesis.settings.register_profile(
        "mutations",
        derandomize=True,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    hypothesis.settings.load_profile("mutations")


def main() -> int:
    """Returns 0 if the share of noticed changes reaches the target."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="*", default=[""], help="parts of the modules' names")
    options.add_argument("--jobs", type=int, default=os.cpu_count(), help="modules at once")
    chosen = options.parse_args()
    deciders = [each for each in DECIDERS if any(part in each.module for part in chosen.only)]
    start = time.monotonic()
    _prepare()
    results: dict[str, Tried] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        multiprocessing.get_context("fork").Pool(chosen.jobs, maxtasksperchild=1) as pool,
    ):
        work = partial(_try, scratch=Path(folder))
        for module, tried in pool.imap_unordered(work, deciders, chunksize=1):
            if isinstance(tried, str):
                print(f"not tried, because the tests do not pass: {tried}", flush=True)
                continue
            results[module] = tried
            _tell_survivors(module, tried)
    is_enough = report(results, (time.monotonic() - start) / 60)
    return 0 if is_enough and len(results) == len(deciders) else 1


if __name__ == "__main__":
    sys.exit(main())
