"""Says when no task of a Spark job has ended for a while: what it waits for shows only there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bq_harper_assets.stores.waiting import WAITS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUIET_S = 30.0  # a task may rightly take minutes, so this is no alarm

Counts = tuple[tuple[int, int, int], ...]  # (stage, tasks, tasks that have ended) of active stages


@contextmanager
def told_while_quiet(spark: "SparkSession", what: str) -> Iterator[None]:
    """For a block that runs Spark jobs; `what` is what they do, such as "moving 20 cells"."""
    with WAITS.told_by(QuietJobs(what, lambda: _active(spark)).tell):
        yield


class QuietJobs:
    """Remembers when the last task ended, as far as it was looked at."""

    def __init__(self, what: str, active: Callable[[], Counts]) -> None:
        self._what = what
        self._active = active
        self._seen: Counts = ()
        self._since = 0.0
        self._moment = datetime.now(UTC)

    def tell(self, now: float) -> str | None:
        """None while tasks end, or while no job is under way."""
        counts: Counts = ()
        with suppress(Exception):  # a Spark that has died is told by the job itself
            counts = self._active()
        if counts != self._seen:
            self._seen, self._since, self._moment = counts, now, datetime.now(UTC)
        if not counts or now - self._since < QUIET_S:
            return None
        tasks, done = sum(each[1] for each in counts), sum(each[2] for each in counts)
        return (
            f"waits for Spark, {self._what}: {done} of {tasks} tasks are done and none has ended"
            f" since {self._moment:%H:%M:%S} UTC; they are still at work, or BigQuery or Harper"
            " answers slowly or not: Spark's log has what each task says of it, and a task gives"
            " up by itself"
        )


def _active(spark: "SparkSession") -> Counts:
    tracker: Any = spark.sparkContext.statusTracker()
    infos = ((stage, tracker.getStageInfo(stage)) for stage in sorted(tracker.getActiveStageIds()))
    return tuple(
        (stage, info.numTasks, info.numCompletedTasks + info.numFailedTasks)
        for stage, info in infos
        if info
    )
