"""A step retries by itself: Dagster would take an interrupt for a failure, and sleep through it."""

import random
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from dagster import AssetExecutionContext, Failure, OpExecutionContext

from bq_harper_assets.activity import doing
from bq_harper_assets.retries.retry import StepDeadline
from bq_harper_assets.retries.waiting import WAITS
from bq_harper_assets.sync.errors import SparkIsGone
from bq_harper_assets.sync.stop_request import Stop

WAITS_S = (60.0, 120.0, 180.0)

_Result = TypeVar("_Result")


def retried(
    context: AssetExecutionContext | OpExecutionContext,
    stop: Stop,
    once: Callable[[], _Result],
    give_up_after: timedelta,
) -> _Result:
    """Returns what `once` does; a Failure that allows retries is tried again, each time later.

    All tries together have one deadline: they may not go on for longer without any call to a store
    that succeeds.
    """
    deadline = StepDeadline(give_up_after.total_seconds())
    with deadline.shared():
        return _retried(context, stop, once, deadline)


def _retried(
    context: AssetExecutionContext | OpExecutionContext,
    stop: Stop,
    once: Callable[[], _Result],
    deadline: StepDeadline,
) -> _Result:
    for number, seconds in enumerate(WAITS_S, start=1):
        try:
            return once()
        except Failure as failure:
            if not failure.allow_retries:
                raise
            stop.check()
            deadline.failed()
            # A new Spark can be had at once; a store that is away wants time.
            is_gone = isinstance(failure.__cause__, SparkIsGone)
            wait = 0.0 if is_gone else seconds * random.uniform(0.5, 1.5)
            if wait > deadline.left_s:
                text = (
                    f"does not try again in {wait:.0f} s: by then nothing has succeeded for longer"
                    f" than the {deadline.limit_s:g} s of sync.giveUpAfter"
                )
                context.log.warning(text)
                WAITS.tell(text)
                raise
            # What a person would have to type is of no use to a run that goes on by itself.
            why = (failure.description or "").partition(" Next: ")[0]
            text = f"tries again in {wait:.0f} s, {number} of {len(WAITS_S)}: {why}"
            context.log.warning(text)
            WAITS.tell(text)
        with doing("waiting to try again"):
            stop.sleep(wait)
    return once()
