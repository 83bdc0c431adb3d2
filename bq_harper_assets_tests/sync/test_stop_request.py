"""What every part of a run hears when it is asked to stop."""

import pickle
import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bq_harper_assets.errors import BqhError
from bq_harper_assets.retries.retry import Call, RetryPolicy
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.errors import RunStopped
from bq_harper_assets.sync.spark.errors import errors_of_spark
from bq_harper_assets.sync.stop_request import Stop, cancelled_by
from bq_harper_assets_tests.stores.small_tables import utc

AN_HOUR_S = 3600.0


def test_a_wait_before_a_retry_ends_when_the_run_is_to_stop() -> None:
    stop = Stop()
    threading.Timer(0.1, stop.ask).start()

    def send() -> None:
        raise TimeoutError("away")

    with pytest.raises(RunStopped):
        RetryPolicy(max_retries=5, initial_delay_s=AN_HOUR_S, sleep=stop.sleep).call(
            send, is_transient=lambda error: True, describe=Call("Harper", "upsert")
        )


def test_a_copy_that_travels_to_a_task_is_not_asked_to_stop() -> None:
    stop = Stop()
    stop.ask()
    policy: RetryPolicy = pickle.loads(pickle.dumps(RetryPolicy(sleep=stop.sleep)))
    policy.sleep(0.0)
    with pytest.raises(RunStopped):
        stop.check()


@pytest.mark.spark
def test_spark_jobs_of_a_run_that_is_to_stop_are_cancelled_also_those_that_begin_later(
    spark: SparkSession,
) -> None:
    def sleep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        time.sleep(AN_HOUR_S)
        yield from batches

    stop = Stop()
    threading.Timer(1.0, stop.ask).start()
    cells = [Cell(Window(utc(2026, 1, 5), utc(2026, 1, 5, 1)), 0)]
    with cancelled_by(stop, spark):
        for _ in range(2):
            with pytest.raises(BqhError), errors_of_spark("ships", cells, "All is safe"):
                spark.range(1).mapInArrow(sleep, "id long").collect()
    assert stop.is_asked
    assert spark.range(3).count() == 3  # later jobs of others go on
