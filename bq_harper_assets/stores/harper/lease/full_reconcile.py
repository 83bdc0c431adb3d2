"""A full reconcile compares every window of a table, after ledger and Harper fell out of step."""

import time
from datetime import datetime

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.errors import HarperInUse
from bq_harper_assets.stores.harper.lease.ledger_agreement import MOST_SLICES, copies_of
from bq_harper_assets.stores.harper.lease.send_deadline import mirror_id
from bq_harper_assets.stores.harper.mirror.tables import MIRRORED_LEASES
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets.sync.ledger_facts import table_facts


def distrust_everything(
    ledger: Ledger,
    harper: HarperClient,
    contract: TableContract,
    bigquery: BigQueryConnection,
    start: datetime,
    end: datetime,
) -> LedgerRoute:
    """Makes this ledger the table's own, and every window from `start` to `end` be compared next.

    No row is moved: the next turn of each cell reconciles it and does not copy. If this is
    interrupted, runs still refuse to start, and it can be repeated. Raises HarperInUse if a run of
    another ledger may still write.
    """
    table = ledger.register_route(table_facts(contract, bigquery.project))
    MIRRORED_LEASES.create(harper)
    copies = copies_of(harper, table)
    own, epochs = str(ledger.identity()), ledger.newest(table).epochs
    others = [  # includes a newer copy of this ledger, whose leases are not known here
        copy.deadline
        for copy in copies
        if copy.ledger != own or copy.epoch > epochs.get(copy.slice, 0)
    ]
    if (until := max(others, default=0.0)) > time.time():
        raise HarperInUse(table, until)
    ledger.distrust(
        table,
        [window.start for window in windows_between(start, end, contract.window)],
        epoch=max((copy.epoch for copy in copies), default=0),
        batch=max((copy.batch or 0 for copy in copies), default=0),
    )
    newest = ledger.newest(table)
    target, slices = table.facts.target, table.facts.slices
    harper.delete(MIRRORED_LEASES.name, [mirror_id(target, n) for n in range(slices, MOST_SLICES)])
    harper.upsert(
        MIRRORED_LEASES.name,
        [
            {
                "id": mirror_id(target, number),
                "ledger": own,
                "owner": "bqh reconcile",
                "epoch": epoch,
                "deadline": time.time(),
                "batch": newest.batch,
            }
            for number, epoch in newest.epochs.items()
        ],
    )
    return table
