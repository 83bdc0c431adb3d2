"""Says how far a Spark job is when no task has ended for a while, and what its tasks wait for.

Spark is asked in a thread of its own: a Java process that hangs answers nothing, and whoever asked
it hangs with it.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bq_harper_assets.stores.waiting import LOOK_EVERY_S, TOLD_AFTER_S, WAITS
from bq_harper_assets.sync.spark.task_login import FOLDER_SETTING, waits_folder
from bq_harper_assets.sync.spark.task_waits import told_by_driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ANSWERS_WITHIN_S = 10.0

Counts = tuple[tuple[int, int, int], ...]  # (stage, tasks, tasks that have ended) of active stages


@contextmanager
def told_while_quiet(spark: "SparkSession", what: str) -> Iterator[None]:
    """For a block that runs Spark jobs; `what` is what they do, such as "moving 20 cells"."""
    jobs = QuietJobs(what, lambda: _active(spark))
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_EVERY_S):
            jobs.look()

    threading.Thread(target=watch, daemon=True, name="bqh-watch-spark").start()
    named: str | None = None
    with suppress(Exception):  # a Spark that has died is told by the job itself
        named = spark.conf.get(FOLDER_SETTING, None)
    try:
        with WAITS.told_by(jobs.tell), told_by_driver(waits_folder(named)):
            yield
    finally:
        over.set()


class QuietJobs:
    """Remembers when the last task ended, as far as it was looked at."""

    def __init__(
        self, what: str, active: Callable[[], Counts], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what = what
        self._active = active
        self._clock = clock
        self._seen: Counts | None = ()  # None: it cannot be asked, as with Spark Connect
        self._since = self._looked_at = clock()
        self._moment = self._looked = datetime.now(UTC)

    def look(self) -> None:
        """Asks Spark, for as long as that takes."""
        counts: Counts | None = None
        with suppress(Exception):  # a Spark that has died is told by the job itself
            counts = self._active()
        self._looked_at, self._looked = self._clock(), datetime.now(UTC)
        if counts != self._seen:
            self._seen, self._since, self._moment = counts, self._looked_at, self._looked

    def tell(self, now: float) -> str | None:
        """None while tasks end, or while no job is under way; it waits for nobody."""
        if now - self._looked_at >= _ANSWERS_WITHIN_S:
            return (
                f"waits for Spark, {self._what}: Spark itself has not said since"
                f" {self._looked:%H:%M:%S} UTC how far it is; its log (.local/spark.log) may say"
                " why. If this goes on, stop the run and start it again: what is committed is safe"
            )
        counts = self._seen
        if counts == () or now - self._since < TOLD_AFTER_S:
            return None
        if counts is None:
            return (
                f"waits for Spark, {self._what}, since {self._moment:%H:%M:%S} UTC; this Spark does"
                " not say here how far it is, its own pages and its log do"
            )
        tasks, done = sum(each[1] for each in counts), sum(each[2] for each in counts)
        return (
            f"waits for Spark, {self._what}: {done} of {tasks} tasks are done, and none has ended"
            f" since {self._moment:%H:%M:%S} UTC; the others are at work, and one that waits for"
            " BigQuery or Harper gives up by itself"
        )


def _active(spark: "SparkSession") -> Counts:
    tracker: Any = spark.sparkContext.statusTracker()
    infos = ((stage, tracker.getStageInfo(stage)) for stage in sorted(tracker.getActiveStageIds()))
    return tuple(
        (stage, info.numTasks, info.numCompletedTasks + info.numFailedTasks)
        for stage, info in infos
        if info
    )
