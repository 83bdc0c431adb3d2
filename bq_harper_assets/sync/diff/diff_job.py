"""One Spark job compares source and target, cell by cell, by id and row hash.

It reads both sides and writes nothing. Applied, its result is a reconcile; reported, it is a proof;
printed, it is a plan.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bq_harper_assets.errors import BqhError
from bq_harper_assets.sync.arrays.arrow_memory import UInt64s
from bq_harper_assets.sync.identity.digest import Digest, digests_by_place
from bq_harper_assets.sync.protocols import FLAGGED, Split, TargetOfTasks, TargetRange
from bq_harper_assets.sync.source.cell_rows import Reading, cell_rows
from bq_harper_assets.sync.spark.hash_blobs import (
    PACKED_DDL,
    RECEIPTS,
    SourcePacker,
    keys_stream,
    pack_held,
    receipt_row,
    unpacked,
    unpacked_keys,
)
from bq_harper_assets.sync.spark.receipts import (
    Failure,
    Receipt,
    Tally,
    error_of,
    failure_of,
    merged,
)
from bq_harper_assets.sync.spark.task_waits import noted_for_driver
from bq_harper_assets.sync.spark.tasks import task_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERS = ("place", "ids", "distinct", "equal", "held", "flagged")
_BLOBS = ("missing", "changed", "vanished", "receipt")
_COMPARED = pa.schema(
    [(name, pa.int64()) for name in _NUMBERS] + [(name, pa.binary()) for name in _BLOBS]
)
_COMPARED_DDL = ", ".join(
    [f"{name} long" for name in _NUMBERS] + [f"{name} binary" for name in _BLOBS]
)
_NO_IDS = np.empty(0, np.uint64)


@dataclass(frozen=True, eq=False, kw_only=True)
class DiffJob:
    """A diff job says what is compared and how; it is sent to the executors."""

    reading: Reading
    target: TargetOfTasks
    ranges: tuple[tuple[TargetRange, ...], ...]  # of the target, by task
    per_place: int = 1  # bins
    deep: bool = False  # by every stored value, not by the stored hash
    as_written: bool = False  # if deep: by the stored hash too


@dataclass(eq=False, kw_only=True)
class CellDiff:
    """A cell diff says how the target's rows of one cell differ from the source's at T."""

    ids: int = 0  # of the source's rows
    distinct: int = 0
    equal: int = 0
    held: int = 0  # rows of the target, without those marked as deleted
    flagged: int = 0
    missing: UInt64s = field(default_factory=lambda: _NO_IDS)  # id hashes
    changed: UInt64s = field(default_factory=lambda: _NO_IDS)
    vanished: list[Any] = field(default_factory=list)  # ids, as the target has them
    read: int = 0  # rows of the source, including those that can have no id
    digest: Digest = field(default_factory=Digest)
    # Attributes that any row of the job has and should not have.
    extras: frozenset[str] = frozenset()

    @property
    def is_equal(self) -> bool:
        """Says whether the target has exactly the source's rows."""
        differs = len(self.missing) or len(self.changed) or self.vanished
        return not differs and self.read == self.ids


def compare(spark: "SparkSession", job: DiffJob) -> Mapping[int, CellDiff]:
    """Compares all cells of the job; returns the differences by place.

    Raises NotCompared if a task could not read its side to the end.
    """
    parts: list[Callable[[], Iterator[pa.RecordBatch]]] = [
        *(partial(_read_source, job, splits) for splits in job.reading.splits),
        *(partial(_read_target, job, ranges) for ranges in job.ranges),
    ]

    def run(part: Callable[[], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        with noted_for_driver(job.target.waits):
            yield from part()

    def join(rows: pa.Table) -> pa.Table:
        return compared_bin(rows, job.per_place)

    found = {place: CellDiff() for place in job.reading.grid.occupied()}
    if not parts:
        return found
    rows = (
        task_rows(spark, parts, run, PACKED_DDL)
        .groupBy("bin")
        .applyInArrow(join, _COMPARED_DDL)
        .collect()
    )
    receipts = [Receipt.loads(bytes(row.receipt)) for row in rows if row.receipt is not None]
    if failure := next((r.failure for r in receipts if r.failure), None):
        raise error_of(failure)
    for row in rows:
        # A target row of a slice that is not in the turn belongs to no cell of it.
        if row.receipt is None and row.place in found:
            _add(found[row.place], row)
    extras = frozenset(name for receipt in receipts for name in receipt.extras)
    for diff in found.values():
        diff.extras = extras
    for place, tally in merged(receipts).items():
        found[place].read, found[place].digest = tally.read, tally.digest
    return found


def _read_source(job: DiffJob, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
    packer = SourcePacker(per_place=job.per_place)
    tallies: dict[int, Tally] = {}
    failure: Failure | None = None
    try:
        for rows in cell_rows(job.reading, splits):
            for place, digest in digests_by_place(rows.places, rows.identity.row_hashes).items():
                tallies.setdefault(place, Tally()).__iadd__(Tally(digest.count, digest=digest))
            named = rows.where(rows.identity.ids.is_valid().to_numpy(zero_copy_only=False))
            identity = named.identity
            hashes = identity.row_hashes
            if job.deep:
                layout = job.reading.layout
                hashes = job.target.value_hashes(named, layout, as_written=job.as_written)
            yield from packer.add(named.places, identity.whole_id_hashes, hashes)
    except BqhError as error:
        failure = failure_of(error)
    yield from packer.rest()
    yield receipt_row(
        Receipt(
            tallies=tallies, refusals=(), requests=0, retries=0, unanswered_at=None, failure=failure
        ).dumps()
    )


def _read_target(job: DiffJob, ranges: Sequence[TargetRange]) -> Iterator[pa.RecordBatch]:
    failure: Failure | None = None
    reading = job.reading
    extras: frozenset[str] = frozenset()
    try:
        with job.target.reader(
            reading.layout, reading.grid.slices, deep=job.deep, as_written=job.as_written
        ) as reader:
            for each, held in reader.rows(ranges):
                places = held.slices + each.place
                yield pack_held(places, held.ids, held.hashes, held.keys, job.per_place)
            extras = frozenset(reader.extras)
    except BqhError as error:
        failure = failure_of(error)
    yield receipt_row(
        Receipt(
            tallies={},
            refusals=(),
            requests=0,
            retries=0,
            unanswered_at=None,
            failure=failure,
            extras=extras,
        ).dumps()
    )


def compared_bin(rows: pa.Table, per_place: int) -> pa.Table:
    """Compares the rows of one bin; receipts are passed on."""
    number = rows.column("bin")[0].as_py()
    if number == RECEIPTS:
        nothing = dict.fromkeys(_COMPARED.names)
        receipts = rows.column("receipt").to_pylist()
        return pa.Table.from_pylist([nothing | {"receipt": r} for r in receipts], _COMPARED)
    ids, hashes = unpacked(rows.column("ids")), unpacked(rows.column("hashes"))
    held_ids, held_hashes = unpacked(rows.column("held_ids")), unpacked(rows.column("held_hashes"))
    order = np.argsort(held_ids, kind="stable")
    at = np.searchsorted(held_ids, ids, sorter=order)
    at = order[np.minimum(at, len(order) - 1)] if len(order) else at
    known = held_ids[at] == ids if len(order) else np.zeros(len(ids), np.bool_)
    same = np.zeros(len(ids), np.bool_)
    same[known] = held_hashes[at[known]] == hashes[known]
    flagged = held_hashes == FLAGGED
    gone = ~np.isin(held_ids, ids) & ~flagged
    keys = unpacked_keys(rows.column("held_keys"))
    result = {
        "place": number // per_place,
        "ids": len(ids),
        "distinct": len(np.unique(ids)),
        "equal": int(same.sum()),
        "held": len(held_ids) - int(flagged.sum()),
        "flagged": int(flagged.sum()),
        "missing": ids[~known].tobytes(),
        "changed": ids[known & ~same].tobytes(),
        "vanished": keys_stream(keys.filter(pa.array(gone))),
        "receipt": None,
    }
    return pa.Table.from_pylist([result], _COMPARED)


def _add(diff: CellDiff, row: Any) -> None:
    diff.ids += row.ids
    diff.distinct += row.distinct
    diff.equal += row.equal
    diff.held += row.held
    diff.flagged += row.flagged
    diff.missing = np.append(diff.missing, np.frombuffer(row.missing, np.uint64))
    diff.changed = np.append(diff.changed, np.frombuffer(row.changed, np.uint64))
    diff.vanished += unpacked_keys(pa.chunked_array([[bytes(row.vanished)]])).to_pylist()
