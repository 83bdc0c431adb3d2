"""A writer sends records to Harper, one request at a time, and singles out rejected rows."""

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.encoding.request_body import Body, bodies
from bq_harper_assets.stores.harper.errors import (
    HarperNotFound,
    HarperRefused,
    HarperUnauthorized,
    NotAllWritten,
)
from bq_harper_assets.sync.arrays.arrow_memory import Int64s
from bq_harper_assets.sync.errors import TooManyRefused
from bq_harper_assets.sync.spark.receipts import RejectedRow

PAYLOAD_CHARACTERS = 100_000


class Writer:
    """A writer counts, by place, what Harper says it wrote; encoding goes on during a request."""

    def __init__(
        self, client: HarperClient, table: str, places: int, most_bytes: int, most_refused: int
    ) -> None:
        self._client = client
        self._table = table
        self._most_refused = most_refused
        self._most_bytes = most_bytes - client.upsert_frame(table)
        self._sender = ThreadPoolExecutor(max_workers=1)
        self._under_way: Future[None] | None = None
        self.written = np.zeros(places, np.int64)
        self.bytes = np.zeros(places, np.int64)
        self.refusals: list[RejectedRow] = []
        self.stale: list[object] = []  # ids of rejected rows, as Harper stores them
        self.requests = 0

    def write(self, records: pa.RecordBatch, places: Int64s, most_rows: int) -> None:
        """Sends all records in order; returns before the last request is answered."""
        for body in bodies(records, most_rows=most_rows, most_bytes=self._most_bytes):
            self.settle()
            rows = records.slice(body.first, body.rows)
            part = places[body.first : body.first + body.rows]
            self._under_way = self._sender.submit(self._send, body, rows, part)

    def settle(self) -> None:
        """Waits until no request is under way; raises the error of the last one."""
        if self._under_way is not None:
            under_way, self._under_way = self._under_way, None
            under_way.result()

    def delete_stale(self) -> None:
        """Deletes old versions of rejected rows, after all other requests are answered."""
        self.settle()
        if self.stale:
            self.requests += 1
            self._client.delete(self._table, self.stale)

    def close(self) -> None:
        """Waits for the request that is under way, also after an error."""
        self._sender.shutdown(wait=True)

    def _send(self, body: Body, rows: pa.RecordBatch, places: Int64s) -> None:
        self.requests += 1
        try:
            answer = self._client.upsert_body(self._table, body.content)
        except (HarperUnauthorized, HarperNotFound):
            raise
        except HarperRefused as error:
            self._narrow_down(body, rows, places, error)
            return
        if answer.done != body.rows or answer.skipped:
            raise NotAllWritten(
                f"Harper wrote {answer.done} of {body.rows} rows of {self._table} and skipped "
                f"{len(answer.skipped)}. The cells of this request are not committed; run it again"
            )
        counts = np.bincount(places, minlength=len(self.written))
        self.written += counts
        self.bytes += counts * len(body.content) // body.rows

    def _narrow_down(
        self, body: Body, rows: pa.RecordBatch, places: Int64s, error: HarperRefused
    ) -> None:
        """Sends a refused request in halves until single rows are rejected.

        A request is one transaction, so one bad row rejects all of it.
        """
        if body.rows == 1:
            payload = body.content[1:-1].decode("utf-8")[:PAYLOAD_CHARACTERS]
            row_id = rows.column(0)[0].as_py()
            self.stale.append(row_id)
            self.refuse(int(places[0]), str(row_id), error.said, payload)
            return
        half = (body.rows + 1) // 2
        for first in (0, half):
            some = rows.slice(first, half)
            for smaller in bodies(some, most_rows=half, most_bytes=self._most_bytes):
                start = first + smaller.first
                part = places[start : start + smaller.rows]
                self._send(smaller, rows.slice(start, smaller.rows), part)

    def refuse(self, place: int, row_id: str, reason: str, payload: str) -> None:
        """Notes a rejected row, under the id that quarantine shows.

        Raises TooManyRefused if there are more than may be.
        """
        self.refusals.append(RejectedRow(place, row_id, reason, payload))
        # A table that is wrong as a whole must not be tried row by row.
        if len(self.refusals) > self._most_refused:
            raise TooManyRefused(self._table, self._most_refused, reason)
