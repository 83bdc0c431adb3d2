"""The work of one Spark task: a few streams from BigQuery's wire to Harper's, in one process.

Rows stay in Arrow from the stream to the request body; what comes back is a receipt, and a hash of
every id that was sent, from which Spark counts the distinct ones.
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.errors import BqhError
from bq_harper_assets.stores.bigquery.client import BigQueryUnavailable
from bq_harper_assets.stores.bigquery.read_session import read_stream
from bq_harper_assets.stores.breaker import CircuitOpen
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.errors import HarperUnavailable
from bq_harper_assets.stores.retry import Retry, RetryPolicy
from bq_harper_assets.sync.arrow_buffers import Int64s
from bq_harper_assets.sync.digest import Digest, digests_by_place
from bq_harper_assets.sync.encode import Encoded, encode_batch
from bq_harper_assets.sync.grid import NOT_OURS, Grid
from bq_harper_assets.sync.lease_terms import Deadline, LeaseRanOut, LeaseTerms
from bq_harper_assets.sync.numbering import Counter, Numbers
from bq_harper_assets.sync.receipts import Failure, Receipt, Tally
from bq_harper_assets.sync.row_hash import row_hashes
from bq_harper_assets.sync.row_ids import Identity, identify
from bq_harper_assets.sync.slices import id_hashes, slice_of
from bq_harper_assets.sync.stored import RowPlan
from bq_harper_assets.sync.windows import window_of
from bq_harper_assets.sync.writer import PAYLOAD_CHARACTERS, Writer

ROWS_AT_ONCE = 20_000  # hashing and encoding need a few thousand rows to be fast
RECEIPT = -1  # the place of the row that carries the receipt
OUTPUT = pa.schema([("place", pa.int64()), ("id", pa.int64()), ("receipt", pa.binary())])
_TRANSIENT = (BigQueryUnavailable, CircuitOpen, HarperUnavailable, LeaseRanOut)


@dataclass(frozen=True, eq=False)
class Move:
    """All that the tasks of a run need; it travels to the executors."""

    bigquery: BigQueryConnection
    harper: HarperConnection
    target: str
    streams: tuple[tuple[str, ...], ...]  # by task
    schema: bytes
    plan: RowPlan
    grid: Grid
    lease: LeaseTerms
    synced_at: datetime
    most_rows: int
    most_bytes: int
    retry: RetryPolicy
    numbers: Mapping[str, Numbers]


def batches_of(move: Move, stream: str) -> Iterator[pa.RecordBatch]:
    """The stream's rows in batches worth computing on."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in read_stream(move.bigquery, stream, move.schema):
        for first in range(0, batch.num_rows, ROWS_AT_ONCE):
            waiting.append(batch.slice(first, ROWS_AT_ONCE))
            count += waiting[-1].num_rows
            if count >= ROWS_AT_ONCE:
                yield pa.concat_batches(waiting)
                waiting, count = [], 0
    if waiting:
        yield pa.concat_batches(waiting)


class Task:
    """One task of a move."""

    def __init__(self, move: Move, earlier_tries: int = 0) -> None:
        self._move = move
        self._earlier_tries = earlier_tries
        self._retries = 0
        # Its own client: asking for a later deadline must not wait for a deadline.
        self._mirror = HarperClient(move.harper, retry=move.retry)
        self._client = HarperClient(
            move.harper,
            retry=move.retry,
            send_guard=Deadline(move.lease, self._mirror),
            on_retry=self._note_retry,
            clock=time.time,
        )
        places = len(move.grid.batches)
        self._writer = Writer(self._client, move.target, places, move.most_bytes)
        self._read = np.zeros(places, np.int64)
        self._digests: dict[int, Digest] = {}

    def run(self, streams: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """Move the streams; the last row is the receipt, also if an expected error ends it."""
        failure: Failure | None = None
        try:
            for stream in streams:
                counter = Counter(self._move.numbers.get(stream))
                for batch in batches_of(self._move, stream):
                    yield self._write(batch, counter)
            self._writer.delete_stale()
        except BqhError as error:
            failure = Failure(str(error), isinstance(error, _TRANSIENT))
        finally:
            self._writer.close()
            self._client.close()
            self._mirror.close()
        receipt = self._receipt(failure).dumps()
        yield pa.record_batch([[RECEIPT], [None], [receipt]], schema=OUTPUT)

    def _write(self, batch: pa.RecordBatch, counter: Counter) -> pa.RecordBatch:
        move, grid = self._move, self._move.grid
        numbers = counter.number(row_hashes(batch, move.plan.names)) if move.numbers else None
        identity = identify(batch, move.plan, numbers)
        length = timedelta(microseconds=grid.length)
        starts = window_of(batch.column(move.plan.timestamp), length)
        places = grid.places_of(starts, slice_of(identity.id_hashes, grid.slices))
        ours = places != NOT_OURS
        if not ours.all():
            places = places[ours]
            batch, identity = batch.filter(pa.array(ours)), identity.where(ours)
        self._count(places, identity)
        encoded = encode_batch(
            batch,
            move.plan,
            identity,
            synced_at=move.synced_at,
            batch_number=pa.array(grid.batches[places]),
        )
        accepted = encoded.reasons.is_null().to_numpy(zero_copy_only=False)
        if not accepted.all():
            self._refuse(batch, encoded, places, ~accepted)
            places = places[accepted]
        return self._send(encoded.accepted, places)

    def _send(self, records: pa.RecordBatch, places: Int64s) -> pa.RecordBatch:
        """In the order of ids, which is that of time: rows written together lie together."""
        order = pc.sort_indices(records.column(0))
        records, places = records.take(order), places[order.to_numpy()]
        self._writer.write(records, places, self._move.most_rows)
        ids = id_hashes(records.column(0), keyless=False).view(np.int64)
        nothing = pa.nulls(len(ids), pa.binary())
        return pa.record_batch([pa.array(places), pa.array(ids), nothing], schema=OUTPUT)

    def _count(self, places: Int64s, identity: Identity) -> None:
        self._read += self._move.grid.count(places)
        for place, digest in digests_by_place(places, identity.row_hashes).items():
            self._digests[place] = self._digests.get(place, Digest()) + digest

    def _refuse(
        self, batch: pa.RecordBatch, encoded: Encoded, places: Int64s, rows: np.ndarray
    ) -> None:
        for row in np.flatnonzero(rows):
            source = batch.slice(row, 1).to_pylist()[0]
            payload = json.dumps(source, default=str, ensure_ascii=False)[:PAYLOAD_CHARACTERS]
            row_id = encoded.rows.column(0)[row].as_py()
            self._writer.refuse(int(places[row]), row_id, encoded.reasons[row].as_py(), payload)

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
            tallies,
            tuple(self._writer.refusals),
            self._writer.requests,
            self._retries,
            self._client.last_unanswered_at,
            failure,
            self._earlier_tries,
        )
