"""A Spark job of which no task ends is told, with how many are done and since when."""

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bq_harper_assets.retries.waiting import WAITS
from bq_harper_assets.sync.spark import job_watch
from bq_harper_assets.sync.spark.job_watch import Counts, QuietJobs, told_while_quiet
from bq_harper_assets.sync.spark.task_waits import FOLDER_SETTING


class Jobs:
    """What Spark says is under way, and the clock."""

    def __init__(self) -> None:
        self.active: Counts = ()
        self.now = 0.0

    def __call__(self) -> Counts:
        return self.active

    def clock(self) -> float:
        return self.now


def test_it_speaks_when_no_task_has_ended_for_5_s() -> None:
    jobs = Jobs()
    quiet = QuietJobs("moving 20 cells of orders", jobs, jobs.clock)
    told = []
    for now, active in (
        (0.0, ()),
        (1.0, ((7, 8, 2),)),
        (5.9, ((7, 8, 2),)),
        (6.0, ((7, 8, 2),)),
        (7.0, ((7, 8, 3),)),
        (11.9, ((7, 8, 3),)),
        (12.0, ((7, 8, 3),)),
        (13.0, ()),
        (19.0, ()),
    ):
        jobs.active, jobs.now = active, now
        quiet.look()
        told.append(quiet.tell(now))
    assert [bool(text) for text in told] == [False] * 3 + [True, False, False, True, False, False]
    assert told[3] is not None
    assert told[3].startswith(
        "waits for Spark, moving 20 cells of orders: 2 of 8 tasks are done, and none has ended"
        " since"
    )
    assert "gives up by itself" in told[3]


def test_a_spark_that_does_not_say_how_far_it_is_is_told_without_it() -> None:
    """Spark Connect has no status tracker."""

    def unknown() -> Counts:
        raise NotImplementedError

    jobs = Jobs()
    quiet = QuietJobs("moving 20 cells", unknown, jobs.clock)
    quiet.look()
    jobs.now = 5.0
    quiet.look()
    told = quiet.tell(5.0)
    assert told is not None
    assert told.startswith("waits for Spark, moving 20 cells, since ")
    assert "its own pages and its log do" in told


def test_a_spark_that_hangs_is_told_and_silences_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hangs, over, said = threading.Event(), threading.Event(), list[str]()

    def hang() -> Any:
        hangs.set()
        over.wait(60)

    spark: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(statusTracker=hang), conf={FOLDER_SETTING: str(tmp_path)}
    )
    monkeypatch.setattr(job_watch, "_ANSWERS_WITHIN_S", 0.2)
    with (
        WAITS.listen(said.append),
        told_while_quiet(spark, "moving 20 cells"),
        WAITS.waiting("another thing", "goes on", since_s=6.0),
    ):
        assert hangs.wait(20)
        ends = time.monotonic() + 20
        while not (any("has not said since" in line for line in said)):
            assert time.monotonic() < ends
            time.sleep(0.05)
    over.set()
    assert any(line.startswith("waits for another thing") for line in said)
