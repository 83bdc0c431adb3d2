"""A Spark session as runs have it, and a write job from the stand-in streams to the sink."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks.encoder import NOON, positions, stored_columns
from benchmarks.sink import ROOT
from benchmarks.streams import HOUR, TIME, Span
from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.table import Sync, TableContract
from bq_harper_assets.defs.resources import SPARK_DEFAULTS, prepare_spark
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.bigquery.source import StreamSplit
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.stores.harper.target import HarperOfTasks
from bq_harper_assets.stores.harper.task_login import task_login
from bq_harper_assets.sync.cells.cut import TimeCut
from bq_harper_assets.sync.cells.grid import Grid, Part
from bq_harper_assets.sync.protocols import LeaseTerms, WriteOrder
from bq_harper_assets.sync.source.cell_rows import Reading
from bq_harper_assets.sync.write.write_task import WriteJob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLICES = 4


@contextmanager
def spark_session(cores: int = 2) -> Iterator["SparkSession"]:
    """Warm: its Python workers have imported what a move needs."""
    from pyspark.sql import SparkSession

    prepare_spark(ROOT)
    settings = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    session = (
        SparkSession.builder.master(f"local[{cores},4]")
        .config(map=SPARK_DEFAULTS | settings)
        .getOrCreate()
    )
    yield session
    session.stop()


def move_of(span: Span, source: BigQueryConnection, sink: HarperConnection) -> WriteJob:
    """All rows of the span, in one task per part, with the defaults of an initial load."""
    schema, batch = positions(1, 0)
    contract = TableContract(
        id="t", dataset="d", table="t", timestamp_column=TIME, target_table="T"
    )
    cells = span.cells(SLICES)
    parts = {cell: Part.whole(cell, number) for number, cell in enumerate(cells, 1)}
    return WriteJob(
        reading=Reading(
            splits=tuple(
                (
                    StreamSplit(
                        connection=source,
                        name=stream,
                        schema=batch.schema.serialize().to_pybytes(),
                        give_up_after=Sync().give_up_after,
                    ),
                )
                for stream in span.streams
            ),
            layout=RowPlan(columns=stored_columns(schema), timestamp=TIME),
            cut=TimeCut(contract.window),
            grid=Grid.of(parts, SLICES),
        ),
        target=HarperOfTasks(login=task_login(sink), table="Positions", retry=RetryPolicy()),
        table="Positions",
        order=WriteOrder(
            lease=LeaseTerms(
                target="Positions",
                epochs={},
                deadline=time.time() + 86_400,
                effect_within_s=45.0,
                max_clock_skew_s=0.0,
            ),
            synced_at=NOON + len(cells) * HOUR,
            most_rows=Sync().initial_batch_size,
            most_bytes=contract.target.max_request_bytes,
        ),
        rows=span.rows,
    )
