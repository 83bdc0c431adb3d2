"""While no task ends, the driver reports how far a Spark job is and what its tasks wait for.

Spark is asked in a separate thread, because a call to a Java process that hangs never returns.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bq_harper_assets.retries.waiting import LOOK_EVERY_S, TOLD_AFTER_S, WAITS
from bq_harper_assets.sync.spark.task_waits import FOLDER_SETTING, told_by_driver, waits_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ANSWERS_WITHIN_S = 10.0

Counts = tuple[tuple[int, int, int], ...]  # (stage, tasks, tasks that have ended) of active stages


@contextmanager
def told_while_quiet(spark: "SparkSession", what: str) -> Iterator[None]:
    """Reports the progress of a block's Spark jobs; `what` is their work, as "moving 20 cells"."""
    jobs = QuietJobs(what, lambda: _active(spark))
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_EVERY_S):
            jobs.look()

    threading.Thread(target=watch, daemon=True, name="bqh-watch-spark").start()
    named: str | None = None
    with suppress(Exception):  # the job itself reports that Spark has died
        named = spark.conf.get(FOLDER_SETTING, None)
    try:
        with WAITS.told_by(jobs.tell), told_by_driver(waits_folder(named)):
            yield
    finally:
        over.set()


class QuietJobs:
    """Quiet jobs know when Spark's task counts last changed, as of the last time it was asked."""

    def __init__(
        self, what: str, active: Callable[[], Counts], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what = what
        self._active = active
        self._clock = clock
        self._seen: Counts | None = ()  # None if Spark does not say, as with Spark Connect
        self._since = self._looked_at = clock()
        self._moment = self._looked = datetime.now(UTC)

    def look(self) -> None:
        """Asks Spark for its task counts, which may take any time."""
        counts: Counts | None = None
        with suppress(Exception):  # the job itself reports that Spark has died
            counts = self._active()
        self._looked_at, self._looked = self._clock(), datetime.now(UTC)
        if counts != self._seen:
            self._seen, self._since, self._moment = counts, self._looked_at, self._looked

    def tell(self, now: float) -> str | None:
        """Returns the line to report, at once; None while tasks end or no job is under way."""
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
            " a store gives up by itself"
        )


def _active(spark: "SparkSession") -> Counts:
    tracker: Any = spark.sparkContext.statusTracker()
    infos = ((stage, tracker.getStageInfo(stage)) for stage in sorted(tracker.getActiveStageIds()))
    return tuple(
        (stage, info.numTasks, info.numCompletedTasks + info.numFailedTasks)
        for stage, info in infos
        if info
    )
