"""A run that is asked to stop: whatever waits hears of it, and Spark's jobs are cancelled."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from bq_harper_assets.sync.errors import RunStopped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_EVERY_S = 0.2


class Stop:
    """Asked for once, by a signal or by Terminate, and heard by every thread of the run."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    def __reduce__(self) -> tuple[type["Stop"], tuple[()]]:
        # A copy that travels to a task is never asked: Spark ends the task itself.
        return (Stop, ())

    @property
    def is_asked(self) -> bool:
        """Whether the run is to end."""
        return self._asked.is_set()

    def ask(self) -> None:
        """Returns at once; may be called from a signal's handler."""
        self._asked.set()

    def check(self) -> None:
        """Raises RunStopped if the run is to end."""
        if self.is_asked:
            raise RunStopped

    def sleep(self, seconds: float) -> None:
        """As time.sleep(), but RunStopped is raised as soon as the run is to end."""
        if self._asked.wait(seconds):
            raise RunStopped


@contextmanager
def cancelled_by(stop: Stop, spark: "SparkSession") -> Iterator[None]:
    """For a block that runs Spark jobs: from when the stop is asked for, none of them goes on."""
    over = threading.Event()

    def cancel() -> None:
        # Again and again: a job may begin just after the others were cancelled.
        while not over.wait(_LOOK_EVERY_S):
            if stop.is_asked:
                with suppress(Exception):  # Spark may be gone, and its jobs with it
                    _cancel_jobs(spark)

    threading.Thread(target=cancel, daemon=True, name="bqh-cancel-jobs").start()
    try:
        yield
    finally:
        over.set()


def _cancel_jobs(spark: Any) -> None:
    """Those of a cluster, or of a Spark Connect server, which knows the session's only."""
    if hasattr(spark, "_jsparkSession"):
        spark.sparkContext.cancelAllJobs()
    else:
        spark.interruptAll()
