"""Harper's table SyncLease has a copy of each lease, by which tasks learn that it was renewed."""

from typing import Any

from bq_harper_assets.ledger.records import Leases
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.lease.send_deadline import mirror_id
from bq_harper_assets.stores.harper.mirror.tables import MIRRORED_LEASES


class HarperLeaseMirror:
    """This writes the copies for one owner.

    What must not wait is sent through the client `hurried`, which should give up soon: while it
    waited for a busy Harper, the lease would run out.
    """

    def __init__(
        self, harper: HarperClient, hurried: HarperClient, target: str, ledger: str, owner: str
    ) -> None:
        self._harper = harper
        self._hurried = hurried
        self._target = target
        self._ledger = ledger
        self._owner = owner
        self._is_unanswered = False

    @property
    def is_unanswered(self) -> bool:
        """Says whether a copy that names a batch may still take effect."""
        return self._is_unanswered

    def create(self) -> None:
        """Makes the table; it may exist."""
        MIRRORED_LEASES.create(self._harper)

    def show(self, leases: Leases, deadline: float, *, at_once: bool = False) -> None:
        """Writes copies with a new deadline.

        `batch` is left out: Harper merges, so that the copy still names the one before.
        """
        client = self._hurried if at_once else self._harper
        self._write(client, leases, {"deadline": deadline})

    def show_batch(self, leases: Leases, batch: int, deadline: float | None = None) -> None:
        """Writes copies that name the newest batch; a deadline is given at the end, in a hurry."""
        client = self._harper if deadline is None else self._hurried
        values = {"batch": batch} | ({} if deadline is None else {"deadline": deadline})
        unanswered = client.last_unanswered_at
        try:
            self._write(client, leases, values)
        finally:
            # A second try that succeeded does not take back the first one.
            self._is_unanswered |= client.last_unanswered_at != unanswered

    def _write(self, client: HarperClient, leases: Leases, values: dict[str, Any]) -> None:
        copies = [
            {
                "id": mirror_id(self._target, lease.slice),
                "ledger": self._ledger,
                "owner": self._owner,
                "epoch": lease.epoch,
            }
            for lease in leases.held
        ]
        client.upsert(MIRRORED_LEASES.name, [copy | values for copy in copies])
