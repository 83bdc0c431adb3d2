"""A keeper whose leases are shown in a real Harper."""

from collections.abc import Sequence
from typing import Any

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.lease.lease_mirror import HarperLeaseMirror
from bq_harper_assets.sync.lease.keeper import Keeper, LeaseTimes


def harper_keeper(
    ledger: Ledger,
    harper: HarperClient,
    table: LedgerRoute,
    slices: Sequence[int],
    owner: str,
    times: LeaseTimes,
    *,
    hurried: HarperClient | None = None,
    **clocks: Any,
) -> Keeper:
    """As a turn makes it; `hurried` sends renewals, or else the one client does."""
    identity, target = str(ledger.identity()), table.facts.target
    mirror = HarperLeaseMirror(harper, hurried or harper, target, identity, owner)
    return Keeper(ledger, mirror, table, slices, owner, times, **clocks)
