"""The resident memory of a command and of Spark's Python workers, noted while the command runs."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from pathlib import Path

import psutil

LOOK_EVERY_S = 1.0
WORKER = "pyspark.daemon"  # Spark's Python workers are forked off it, and keep its command line
MIB = 1024**2


@dataclass(frozen=True)
class Look:
    """What was resident at a moment, in MiB, and the line that the command had printed last."""

    driver: float
    workers: float  # all of them together
    line: str


@dataclass(frozen=True)
class Peaks:
    """The most that was resident in the first and in the last third of some looks."""

    first: float
    last: float

    @classmethod
    def of(cls, resident: Sequence[float]) -> "Peaks":
        """Each look counts alike: they were taken in equal steps of time."""
        third = len(resident) // 3
        assert third, f"{len(resident)} looks are too few to compare their thirds"
        return cls(max(resident[:third]), max(resident[-third:]))

    @property
    def growth(self) -> float:
        """1.0 if memory is flat."""
        return self.last / self.first

    def __str__(self) -> str:
        return (
            f"{self.first:.0f} MiB at most in the first third, {self.last:.0f} in the last:"
            f" {self.growth:.2f} times as much"
        )


def part(looks: Sequence[Look], first: str, end: str) -> list[Look]:
    """From the first line with these words to the one, not included, that has those."""
    begun = dropwhile(lambda look: first not in look.line, looks)
    return list(takewhile(lambda look: end not in look.line, begun))


@contextmanager
def watched(pid: int, log: Path) -> Iterator[list[Look]]:
    """Looks at the process and at what it has started, until the end of the block."""
    looks: list[Look] = []
    over = threading.Event()
    watching = threading.Thread(target=_watch, args=(pid, log, looks, over), daemon=True)
    watching.start()
    try:
        yield looks
    finally:
        over.set()
        watching.join()


def _watch(pid: int, log: Path, looks: list[Look], over: threading.Event) -> None:
    due = time.monotonic()
    with suppress(psutil.NoSuchProcess):  # it has ended
        driver = psutil.Process(pid)
        while not over.wait(max(due - time.monotonic(), 0)):
            due += LOOK_EVERY_S
            own = driver.memory_info().rss / MIB
            workers = sum(_of_worker(child) for child in driver.children(recursive=True))
            looks.append(Look(own, workers, _last_line(log)))


def _of_worker(process: psutil.Process) -> float:
    with suppress(psutil.Error):  # it has ended since
        if WORKER in " ".join(process.cmdline()):
            return float(process.memory_info().rss) / MIB
    return 0.0


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8").splitlines()
    return lines[-1] if lines else ""
