"""A step's own retries: Dagster's would take an interrupt for a failure, and sleep through it."""

import random
from collections.abc import Callable
from typing import TypeVar

from dagster import AssetExecutionContext, Failure, OpExecutionContext

from bq_harper_assets.stores.waiting import WAITS
from bq_harper_assets.sync.spark_errors import SparkIsGone
from bq_harper_assets.sync.stopping import Stop

WAITS_S = (60.0, 120.0, 180.0)

Result = TypeVar("Result")


def retried(
    context: AssetExecutionContext | OpExecutionContext, stop: Stop, once: Callable[[], Result]
) -> Result:
    """What `once` returns; a Failure that allows retries is tried again, each time after longer."""
    for number, seconds in enumerate(WAITS_S, start=1):
        try:
            return once()
        except Failure as failure:
            if not failure.allow_retries:
                raise
            stop.check()
            # A new Spark can be had at once; a store that is away wants time.
            is_gone = isinstance(failure.__cause__, SparkIsGone)
            wait = 0.0 if is_gone else seconds * random.uniform(0.5, 1.5)
            text = f"tries again in {wait:.0f} s, {number} of {len(WAITS_S)}: {failure.description}"
            context.log.warning(text)
            WAITS.tell(text)
        stop.sleep(wait)
    return once()
