"""Ways compared in turns, so that other work on the machine falls on all of them alike."""

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def is_quick(about: str | None) -> bool:
    """Whether a benchmark was asked only for a sign of life; `--help` says what it is `about`."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="little of it: does it still run?")
    quick: bool = parser.parse_args().quick
    return quick


@dataclass(frozen=True)
class Cost:
    """What one pass took."""

    rows: int
    seconds: float
    cpu_seconds: float = 0.0

    @property
    def rate(self) -> float:
        return self.rows / self.seconds

    @property
    def cpu_per_row(self) -> float:
        return self.cpu_seconds / self.rows


@dataclass(frozen=True)
class Ratio:
    """Of several rounds: the median, the least and the most."""

    median: float
    least: float
    most: float
    rounds: int

    @classmethod
    def of(cls, ratios: Iterable[float]) -> "Ratio":
        """Of one ratio per round."""
        found = sorted(ratios)
        return cls(statistics.median(found), found[0], found[-1], len(found))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.least:.2f} to {self.most:.2f} in {self.rounds} rounds)"


def in_turns(ways: Mapping[str, Callable[[], Cost]], rounds: int) -> dict[str, list[Cost]]:
    """Each way once per round, each round beginning with another one."""
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    names = list(ways)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            costs[name].append(ways[name]())
            print(".", end="", file=sys.stderr, flush=True)
    return costs


def ratios(
    costs: Mapping[str, Sequence[Cost]], ours: str, theirs: str, of: Callable[[Cost], float]
) -> Ratio:
    """Ours over theirs, round by round."""
    pairs = zip(costs[ours], costs[theirs], strict=True)
    return Ratio.of(of(our) / of(their) for our, their in pairs)


def record(
    name: str, title: str, lines: Sequence[str], figures: Mapping[str, object], *, keep: bool
) -> None:
    """Print the lines; `keep` puts them and the figures under results/ too."""
    load = f"load average {os.getloadavg()[1]:.1f} with other work"
    when = f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, {load}"
    text = "\n".join([f"# {title}", "", f"Taken {when}.", "", *lines, ""])
    print(text)
    if not keep:
        return
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    figures_text = json.dumps({"taken": when, **figures}, indent=2)
    (RESULTS / f"{name}.json").write_text(figures_text + "\n", encoding="utf-8")
