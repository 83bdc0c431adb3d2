"""When a run is asked to stop, whatever waits ends and Spark's jobs are cancelled."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from bq_harper_assets.sync.errors import RunStopped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_EVERY_S = 0.2


class Stop:
    """A stop is requested once, by a signal or by Terminate, and every thread of the run obeys."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    def __reduce__(self) -> tuple[type["Stop"], tuple[()]]:
        # A copy that is sent to a task never learns of the request: Spark ends the task itself.
        return (Stop, ())

    @property
    def is_asked(self) -> bool:
        """Says whether the run is to end."""
        return self._asked.is_set()

    def ask(self) -> None:
        """Requests the stop and returns at once; a signal handler may call it."""
        self._asked.set()

    def check(self) -> None:
        """Raises RunStopped if the run is to end."""
        if self.is_asked:
            raise RunStopped

    def sleep(self, seconds: float) -> None:
        """Sleeps as time.sleep() does, but raises RunStopped as soon as the run is to end."""
        if self._asked.wait(seconds):
            raise RunStopped


@contextmanager
def cancelled_by(stop: Stop, spark: "SparkSession") -> Iterator[None]:
    """Cancels the Spark jobs of the block, those begun later too, once the stop is requested."""
    over = threading.Event()

    def cancel() -> None:
        # Cancelling is repeated, because a job may begin just after the others were cancelled.
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
    """Cancels all jobs; on a Spark Connect server only those of this session can be."""
    if hasattr(spark, "_jsparkSession"):
        spark.sparkContext.cancelAllJobs()
    else:
        spark.interruptAll()
