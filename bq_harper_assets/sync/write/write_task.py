"""A write task reads a few splits of the source and writes their rows to the target.

Rows stay in Arrow from the split to the target's writer. The task returns a receipt, and a hash of
every id that was sent, from which the distinct ones are counted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from bq_harper_assets.errors import BqhError
from bq_harper_assets.sync.arrays.arrow_memory import Bools, UInt64s
from bq_harper_assets.sync.errors import TooManyRefused
from bq_harper_assets.sync.identity.digest import Digest, digests_by_place
from bq_harper_assets.sync.protocols import Split, TargetOfTasks, WriteOrder
from bq_harper_assets.sync.source.cell_rows import CellRows, Reading, cell_rows
from bq_harper_assets.sync.spark.hash_blobs import SourcePacker, receipt_row
from bq_harper_assets.sync.spark.receipts import Failure, Receipt, Tally, failure_of


@dataclass(frozen=True, eq=False)
class Chosen:
    """Chosen rows are all rows of some places, and those of other places that have these ids."""

    whole: Bools  # by place
    ids: UInt64s  # id hashes, ascending

    def among(self, rows: CellRows) -> Bools:
        """Says which of the rows are chosen.

        Rows without an id are included: only the encoder knows why they have none.
        """
        hashes = rows.identity.whole_id_hashes
        listed = np.isin(hashes, self.ids) if len(self.ids) else np.zeros(len(hashes), np.bool_)
        nameless = rows.identity.ids.is_null().to_numpy(zero_copy_only=False)
        chosen: Bools = self.whole[rows.places] | listed | nameless
        return chosen


@dataclass(frozen=True, eq=False, kw_only=True)
class WriteJob:
    """This is all that the tasks of a turn need to write; it is sent to the executors."""

    reading: Reading
    target: TargetOfTasks
    table: str  # the target's name of it
    order: WriteOrder
    rows: int  # approximately
    per_place: int = 1  # bins
    chosen: Chosen | None = None  # None: every row


def within_limit(receipts: Sequence[Receipt], target: str, most: int) -> tuple[Receipt, ...]:
    """Returns the receipts; those with rejected rows become failures if these are too many."""
    refusals = [refusal for receipt in receipts for refusal in receipt.refusals]
    if len(refusals) <= most:
        return tuple(receipts)
    error = TooManyRefused(target, most, refusals[-1].reason)
    failure = Failure(str(error), is_transient=False)
    return tuple(
        replace(receipt, failure=receipt.failure or failure) if receipt.refusals else receipt
        for receipt in receipts
    )


class Task:
    """A task reads some splits, writes their rows and returns a receipt."""

    def __init__(self, job: WriteJob, earlier_tries: int = 0) -> None:
        self._job = job
        self._earlier_tries = earlier_tries
        self._writer = job.target.writer(job.order, job.reading)
        self._sent = SourcePacker(per_place=job.per_place)
        self._read = np.zeros(len(job.reading.grid.batches), np.int64)
        self._digests: dict[int, Digest] = {}

    def run(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
        """Writes the rows of the splits; the last row is the receipt, also after a BqhError."""
        failure: Failure | None = None
        try:
            for rows in cell_rows(self._job.reading, splits):
                self._count(rows)
                chosen = self._job.chosen
                some = rows if chosen is None else rows.where(chosen.among(rows))
                yield from self._sent.add(*self._writer.write(some))
            self._writer.finish()
        except BqhError as error:
            failure = failure_of(error)
        finally:
            self._writer.close()
        yield from self._sent.rest()
        yield receipt_row(self._receipt(failure).dumps())

    def _count(self, rows: CellRows) -> None:
        self._read += self._job.reading.grid.count(rows.places)
        for place, digest in digests_by_place(rows.places, rows.identity.row_hashes).items():
            self._digests[place] = self._digests.get(place, Digest()) + digest

    def _receipt(self, failure: Failure | None) -> Receipt:
        tallies = {
            int(place): Tally(
                int(self._read[place]),
                int(self._writer.written[place]),
                int(self._writer.bytes[place]),
                self._digests.get(int(place), Digest()),
            )
            for place in np.flatnonzero(self._read)
        }
        return Receipt(
            tallies=tallies,
            refusals=tuple(self._writer.refusals),
            requests=self._writer.requests,
            retries=self._writer.retries,
            unanswered_at=self._writer.unanswered_at,
            failure=failure,
            earlier_tries=self._earlier_tries,
        )
