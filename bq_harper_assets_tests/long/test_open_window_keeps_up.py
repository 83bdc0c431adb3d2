"""A table that grows while it is followed stays in phase steady, over the close of its window too.

The short form of benchmarks/live_sync.py, which follows 1,000 rows a second for a quarter of an
hour.
"""

import time
from datetime import UTC, datetime

import pytest

from benchmarks.live_sync import DATASET, MINUTE, SECOND, Feed, Plan, follow
from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.table import Sync as Pace
from bq_harper_assets.instants import floor_to_window
from bq_harper_assets.routes.bigquery_to_harper import BigQueryToHarper
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.phases import Phase
from bq_harper_assets.sync.turn.turn import Turn
from bq_harper_assets_tests.sync.conftest import Sync


@pytest.mark.promise("H6")
@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.spark
def test_a_growing_table_is_steady_before_and_after_its_window_closes(
    sync: Sync, bigquery_connection: BigQueryConnection
) -> None:
    backlog, lag = 20 * SECOND, 2 * SECOND
    began = _with_time_to_poll(datetime.now(UTC)).replace(microsecond=0)
    closes = floor_to_window(began, MINUTE) + MINUTE
    lasts = closes + 20 * SECOND - began
    plan = Plan(rows_per_second=200, lasts=lasts, backlog=backlog, window=MINUTE, load=SECOND)
    feed = Feed(bigquery_connection, began - backlog, plan)
    start = floor_to_window(began - backlog, MINUTE)
    # A minute is shorter than a window may be declared: nothing else of it is made up.
    contract = sync.contract(
        TableRef(bigquery_connection.project, DATASET, "positions"),
        safety_lag=lag,
        sync=Pace(
            start_timestamp=start,
            poll_interval=2_000,
            steady_threshold=60,  # a window's length: what is not topped up does not keep it
            catchup_threshold=3600,
        ),
    ).model_copy(update={"window": MINUTE})
    run = Turn(
        route=BigQueryToHarper(sync.stores, contract),
        spark=sync.spark,
        run_id="live",
        retry=sync.retry,
    )
    with feed.growing():
        watch = follow(run, start, closes + 20 * SECOND)

    first, *after = watch.phases
    assert first in (Phase.STEADY, Phase.CATCHUP)  # it begins with what lay there before
    assert len(after) >= 2
    assert set(after) == {Phase.STEADY}
    assert watch.left_open[closes - MINUTE] >= 2  # topped up while it was open
    assert closes - MINUTE in watch.windows
    time.sleep(lag.total_seconds() + 1)
    run.sync(sync.cells(contract, start, closes + MINUTE))
    assert sorted(row["number"] for row in sync.rows(contract)) == list(range(feed.rows))


def _with_time_to_poll(now: datetime) -> datetime:
    """Now, or the next minute if this one is nearly over."""
    left = floor_to_window(now, MINUTE) + MINUTE - now
    if left > 30 * SECOND:
        return now
    time.sleep(left.total_seconds())
    return now + left
