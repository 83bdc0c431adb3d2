"""Rows of the source are found by their id hashes, with their ids and the records to be stored."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bq_harper_assets.sync.arrays.arrow_memory import UInt64s
from bq_harper_assets.sync.protocols import Split, TargetOfTasks
from bq_harper_assets.sync.source.cell_rows import CellRows, Reading, cell_rows
from bq_harper_assets.sync.spark.tasks import task_rows
from bq_harper_assets.sync.write.write_task import Chosen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

StoredRecord = tuple[Mapping[str, Any], str | None]  # a record, or why a row cannot be stored
_ROWS = pa.schema({"place": pa.int64(), "hash": pa.int64(), "row": pa.string()})
_ROWS_DDL = "place long, hash long, row string"


@dataclass(frozen=True, kw_only=True)
class NamedRow:
    """A named row is one row of the source, with its id and the record that should be stored."""

    place: int
    id_hash: int
    id: Any  # None if it can have none
    record: Mapping[str, Any]
    reason: str | None  # why it cannot be stored


def named_rows(rows: CellRows, records: Iterable[StoredRecord]) -> Iterator[NamedRow]:
    """Yields rows that were read, each with its id and the record that should be stored."""
    identity = rows.identity
    places, hashes = rows.places.tolist(), identity.whole_id_hashes.tolist()
    for place, id_hash, row_id, (record, reason) in zip(
        places, hashes, identity.ids.to_pylist(), records, strict=True
    ):
        yield NamedRow(place=place, id_hash=id_hash, id=row_id, record=record, reason=reason)


def name_rows(
    spark: "SparkSession", reading: Reading, target: TargetOfTasks, ids: UInt64s
) -> list[NamedRow]:
    """Returns the rows with these ids, and those that can have none; it is meant for few rows."""
    if not reading.splits:
        return []

    def run(splits: tuple[Split, ...]) -> Iterator[pa.RecordBatch]:
        return _named(reading, target, splits, np.sort(ids))

    rows = []
    for row in task_rows(spark, reading.splits, run, _ROWS_DDL).collect():
        row_id, record, reason = json.loads(row.row)
        unsigned = row.hash & 0xFFFFFFFFFFFFFFFF
        rows.append(
            NamedRow(place=row.place, id_hash=unsigned, id=row_id, record=record, reason=reason)
        )
    return rows


def _named(
    reading: Reading, target: TargetOfTasks, splits: tuple[Split, ...], ids: UInt64s
) -> Iterator[pa.RecordBatch]:
    chosen = Chosen(np.zeros(len(reading.grid.batches), np.bool_), ids)
    for rows in cell_rows(reading, splits):
        some = rows.where(chosen.among(rows))
        texts = [
            json.dumps([row.id, row.record, row.reason])
            for row in named_rows(some, target.records(some, reading.layout))
        ]
        hashes = some.identity.whole_id_hashes.view(np.int64)
        yield pa.record_batch([some.places, hashes, pa.array(texts, pa.string())], schema=_ROWS)
