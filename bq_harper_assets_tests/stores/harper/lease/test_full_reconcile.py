"""Every window is compared after ledger and Harper fell out of step."""

from datetime import timedelta

import pytest

from bq_harper_assets.ledger.errors import LeaseHeld
from bq_harper_assets.ledger.records import Mode
from bq_harper_assets.stores.harper.errors import HarperInUse
from bq_harper_assets.stores.harper.lease.full_reconcile import distrust_everything
from bq_harper_assets.stores.harper.mirror.tables import MIRRORED_LEASES
from bq_harper_assets_tests.stores.harper.lease.test_ledger_agreement_lost import pair
from bq_harper_assets_tests.sync.changing_table import DAY, THREE
from bq_harper_assets_tests.sync.pair import CHANGES, Pair

__all__ = ["pair"]
pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


def test_a_run_that_may_still_write_under_the_other_ledger_is_waited_for(pair: Pair) -> None:
    sync, contract = pair.table.sync, pair.table.contract
    known = pair.ledger.find_route(contract.id)
    assert known is not None
    leases = pair.ledger.acquire(known, [1], "another run", timedelta(minutes=1))

    def distrust() -> None:
        ledger = pair.table.sync.stores.ledger
        distrust_everything(ledger, sync.harper, contract, sync.stores.bigquery, DAY, THREE)

    with pytest.raises(LeaseHeld, match=f"bqh reconcile {contract.id}"):
        distrust()
    pair.ledger.release(leases)
    newest = pair.mirror()[0]
    sync.harper.upsert(MIRRORED_LEASES.name, [newest | {"deadline": 4e9}])
    pair.use("new.db")
    with pytest.raises(HarperInUse, match=f"bqh reconcile {contract.id}"):
        distrust()
    # It had more slices than this one.
    of_more = newest | {"id": f"{contract.target.table}|s02", "epoch": 99, "batch": 999}
    sync.harper.upsert(MIRRORED_LEASES.name, [newest, of_more | {"deadline": 4e9}])
    with pytest.raises(HarperInUse):
        distrust()
    sync.harper.upsert(MIRRORED_LEASES.name, [of_more])
    distrust()
    ours = pair.ledger.newest(known)
    assert (ours.batch, min(ours.epochs.values())) == (999, 100)
    assert sync.harper.search_by_id(MIRRORED_LEASES.name, [of_more["id"]]) == []


def test_what_fails_after_everything_was_distrusted_is_compared_by_the_next_run(
    pair: Pair,
) -> None:
    pair.use("new.db")
    sync, contract = pair.table.sync, pair.table.contract
    known = distrust_everything(
        pair.ledger, sync.harper, contract, sync.stores.bigquery, DAY, THREE
    )
    assert {record.commit for record in pair.ledger.cells(known, DAY, THREE)} == {None}
    assert len(pair.ledger.cells(known, DAY, THREE)) == 6
    pair.table.change(CHANGES[0])
    assert {cell.mode for cell in pair.table.run().cells} == {Mode.RECONCILE}
    assert pair.table.held == pair.table.wanted
