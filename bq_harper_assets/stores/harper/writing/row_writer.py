"""A task's rows are encoded as records and written to Harper under the lease of its turn."""

import json
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.retries.retry import Retry, RetryPolicy
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.encoding.record import Encoded, encode_batch
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.stores.harper.index_keys import is_lost
from bq_harper_assets.stores.harper.lease.send_deadline import Deadline
from bq_harper_assets.stores.harper.writing.harper_writer import PAYLOAD_CHARACTERS, Writer
from bq_harper_assets.sync.arrays.arrow_memory import Bools, Int64s, UInt64s
from bq_harper_assets.sync.cells.grid import Grid
from bq_harper_assets.sync.cells.slicing import id_hashes
from bq_harper_assets.sync.identity.row_id import hash_text
from bq_harper_assets.sync.protocols import WriteOrder
from bq_harper_assets.sync.source.cell_rows import CellRows
from bq_harper_assets.sync.spark.receipts import RejectedRow, nameless_id


class HarperRowWriter:
    """This writes the rows of one task; its counts are of what Harper has answered."""

    def __init__(
        self,
        connection: HarperConnection,
        target: str,
        retry: RetryPolicy,
        order: WriteOrder,
        plan: RowPlan,
        grid: Grid,
    ) -> None:
        self._order = order
        self._plan = plan
        self._grid = grid
        self._retries = 0
        # The mirror has its own client: reading a later deadline must not wait for a deadline.
        self._mirror = HarperClient(connection, retry=retry)
        self._client = HarperClient(
            connection,
            retry=retry,
            send_guard=Deadline(order.lease, self._mirror),
            on_retry=self._note_retry,
            clock=time.time,
        )
        places = len(grid.batches)
        self._writer = Writer(self._client, target, places, order.most_bytes, order.most_refused)

    @property
    def written(self) -> Int64s:
        """Counts the rows that Harper says it wrote, by place."""
        return self._writer.written

    @property
    def bytes(self) -> Int64s:
        """Counts the bytes of these rows, by place."""
        return self._writer.bytes

    @property
    def refusals(self) -> list[RejectedRow]:
        """Returns the rows that cannot be stored."""
        return self._writer.refusals

    @property
    def requests(self) -> int:
        """Counts the requests that were sent."""
        return self._writer.requests

    @property
    def retries(self) -> int:
        """Counts the requests that were sent again."""
        return self._retries

    @property
    def unanswered_at(self) -> float | None:
        """Returns when the last write was sent that was never answered."""
        return self._client.last_unanswered_at

    def write(self, rows: CellRows) -> tuple[Int64s, UInt64s]:
        """Writes in the order of ids, so that rows written together are stored together."""
        encoded = encode_batch(
            rows.batch,
            self._plan,
            rows.identity,
            synced_at=self._order.synced_at,
            batch_number=pa.array(self._grid.batches[rows.places]),
            clears=self._order.clears,
        )
        accepted = encoded.reasons.is_null().to_numpy(zero_copy_only=False)
        if not accepted.all():
            self._refuse(rows, encoded, ~accepted)
        records, places = encoded.accepted, rows.places[accepted]
        by_id = pc.sort_indices(records.column(0))
        records, places = records.take(by_id), places[by_id.to_numpy()]
        self._writer.write(records, places, self._order.most_rows)
        return places, id_hashes(records.column(0), keyless=False)

    def finish(self) -> None:
        """Deletes old versions of rejected rows, after all other requests are answered."""
        self._writer.delete_stale()

    def close(self) -> None:
        """Waits for the request that is under way, also after an error, and closes."""
        self._writer.close()
        self._client.close()
        self._mirror.close()

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
        column = self._plan.id_column
        value = source.get(column.name) if column is not None else None
        return value if isinstance(value, str) and is_lost(value) else None

    def _note_retry(self, retry: Retry) -> None:
        self._retries += 1
