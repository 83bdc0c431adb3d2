"""Vanished rows are removed from the target under the lease, as the table's policy says."""

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.identifiers import DELETED_AT
from bq_harper_assets.ledger.records import Batch
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.encoding.text_forms import stored_text
from bq_harper_assets.stores.harper.lease.send_deadline import Deadline
from bq_harper_assets.sync.protocols import DeletePolicy, LeaseTerms

_ROWS_PER_REQUEST = 1_000


class HarperRemoval:
    """A removal sends deletes one after the other, and knows whether all of them were answered."""

    def __init__(
        self, connection: HarperConnection, table: str, lease: LeaseTerms, retry: RetryPolicy
    ) -> None:
        self._table = table
        self._mirror = HarperClient(connection, retry=retry)
        self._client = HarperClient(
            connection, retry=retry, send_guard=Deadline(lease, self._mirror), clock=time.time
        )

    def __enter__(self) -> "HarperRemoval":
        return self

    def __exit__(self, *exc: object) -> None:
        self._client.close()
        self._mirror.close()

    @property
    def all_answered(self) -> bool:
        """Says whether every delete was answered: Harper may still apply one that was not."""
        return self._client.last_unanswered_at is None

    def remove(
        self,
        batch: Batch,
        ids: Sequence[Any],
        policy: DeletePolicy,
        primary_key: str,
        t: datetime,
    ) -> None:
        """Deletes the rows, marks them as deleted at T, or leaves them, as the policy says."""
        if policy == "keep":
            return
        for first in range(0, len(ids), _ROWS_PER_REQUEST):
            some = list(ids[first : first + _ROWS_PER_REQUEST])
            if policy == "mirror":
                self._client.delete(self._table, some)
            else:
                marks = [{primary_key: each, DELETED_AT: stored_text(t)} for each in some]
                self._client.upsert(self._table, marks)
