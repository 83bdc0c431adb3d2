"""A write task reads a few of BigQuery's streams and writes their rows to Harper.

Rows stay in Arrow from the stream to the request body. The task returns a receipt, and a hash of
every id that was sent, from which the distinct ones are counted.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bq_harper_assets.errors import BqhError
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.index_keys import is_lost
from bq_harper_assets.stores.retry import Retry, RetryPolicy
from bq_harper_assets.sync.arrays.arrow_memory import Bools, Int64s, UInt64s
from bq_harper_assets.sync.cells.slicing import id_hashes
from bq_harper_assets.sync.errors import TooManyRefused
from bq_harper_assets.sync.identity.digest import Digest, digests_by_place
from bq_harper_assets.sync.identity.row_id import hash_text
from bq_harper_assets.sync.lease.send_deadline import Deadline, LeaseTerms
from bq_harper_assets.sync.source.cell_rows import CellRows, Reading, cell_rows
from bq_harper_assets.sync.spark.hash_blobs import SourcePacker, receipt_row
from bq_harper_assets.sync.spark.receipts import Failure, Receipt, Tally, failure_of, nameless_id
from bq_harper_assets.sync.spark.task_login import HarperOfTasks
from bq_harper_assets.sync.write.harper_writer import PAYLOAD_CHARACTERS, Writer
from bq_harper_assets.sync.write.record import Encoded, encode_batch


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
class Move:
    """This is all that the tasks of a turn need to write; it is sent to the executors."""

    reading: Reading
    harper: HarperOfTasks
    target: str
    lease: LeaseTerms
    synced_at: datetime
    most_rows: int
    most_bytes: int
    retry: RetryPolicy
    rows: int  # approximately
    per_place: int = 1  # bins
    chosen: Chosen | None = None  # None: every row
    most_refused: int = 1_000  # by all tasks together
    clears: tuple[str, ...] = ()  # attributes that are set to NULL


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
    """A task reads some streams, writes their rows and returns a receipt."""

    def __init__(self, move: Move, earlier_tries: int = 0) -> None:
        self._move = move
        self._earlier_tries = earlier_tries
        self._retries = 0
        # The mirror has its own client: reading a later deadline must not wait for a deadline.
        harper = move.harper.connection()
        self._mirror = HarperClient(harper, retry=move.retry)
        self._client = HarperClient(
            harper,
            retry=move.retry,
            send_guard=Deadline(move.lease, self._mirror),
            on_retry=self._note_retry,
            clock=time.time,
        )
        places = len(move.reading.grid.batches)
        self._writer = Writer(self._client, move.target, places, move.most_bytes, move.most_refused)
        self._sent = SourcePacker(per_place=move.per_place)
        self._read = np.zeros(places, np.int64)
        self._digests: dict[int, Digest] = {}

    def run(self, streams: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Writes the rows of the streams; the last row is the receipt, also after a BqhError."""
        failure: Failure | None = None
        try:
            for rows in cell_rows(self._move.reading, streams):
                self._count(rows)
                chosen = self._move.chosen
                yield from self._write(rows if chosen is None else rows.where(chosen.among(rows)))
            self._writer.delete_stale()
        except BqhError as error:
            failure = failure_of(error)
        finally:
            self._writer.close()
            self._client.close()
            self._mirror.close()
        yield from self._sent.rest()
        yield receipt_row(self._receipt(failure).dumps())

    def _write(self, rows: CellRows) -> Iterator[pa.RecordBatch]:
        move = self._move
        encoded = encode_batch(
            rows.batch,
            move.reading.plan,
            rows.identity,
            synced_at=move.synced_at,
            batch_number=pa.array(move.reading.grid.batches[rows.places]),
            clears=move.clears,
        )
        accepted = encoded.reasons.is_null().to_numpy(zero_copy_only=False)
        if not accepted.all():
            self._refuse(rows, encoded, ~accepted)
        return self._send(encoded.accepted, rows.places[accepted])

    def _send(self, records: pa.RecordBatch, places: Int64s) -> Iterator[pa.RecordBatch]:
        """Writes in the order of ids, so that rows written together are stored together."""
        order = pc.sort_indices(records.column(0))
        records, places = records.take(order), places[order.to_numpy()]
        self._writer.write(records, places, self._move.most_rows)
        ids = id_hashes(records.column(0), keyless=False)
        yield from self._sent.add(places, ids)

    def _count(self, rows: CellRows) -> None:
        self._read += self._move.reading.grid.count(rows.places)
        for place, digest in digests_by_place(rows.places, rows.identity.row_hashes).items():
            self._digests[place] = self._digests.get(place, Digest()) + digest

    def _refuse(self, rows: CellRows, encoded: Encoded, refused: Bools) -> None:
        hashes = hash_text(rows.identity.row_hashes)
        for row in np.flatnonzero(refused):
            source = rows.batch.slice(row, 1).to_pylist()[0]
            payload = json.dumps(source, default=str, ensure_ascii=False)[:PAYLOAD_CHARACTERS]
            row_id, place = encoded.rows.column(0)[row].as_py(), int(rows.places[row])
            stale = row_id if row_id is not None else self._lost_id(source)
            if stale is not None:
                self._writer.stale.append(stale)
            shown = str(row_id) if row_id is not None else nameless_id(hashes[row].as_py())
            self._writer.refuse(place, shown, encoded.reasons[row].as_py(), payload)

    def _lost_id(self, source: Mapping[str, Any]) -> str | None:
        """Returns the key by which an earlier release may have stored a row, unfound by windows."""
        column = self._move.reading.plan.id_column
        value = source.get(column.name) if column is not None else None
        return value if isinstance(value, str) and is_lost(value) else None

    def _note_retry(self, retry: Retry) -> None:
        self._retries += 1

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
            retries=self._retries,
            unanswered_at=self._client.last_unanswered_at,
            failure=failure,
            earlier_tries=self._earlier_tries,
        )
