"""What a schema needs in Harper is made from its record; without a record nothing is."""

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.table.schema_evolution import evolve_table
from bq_harper_assets.sync.errors import NeverSynced
from bq_harper_assets_tests.schema.samples import contract


def test_a_table_that_was_never_synced_is_refused_with_its_first_command(
    ledger: Ledger, nowhere: str
) -> None:
    harper = HarperClient(HarperConnection(url=nowhere, user="nobody", password="none"))
    with harper, pytest.raises(NeverSynced) as caught:
        evolve_table(ledger, harper, contract())
    assert str(caught.value) == (
        "orders was never synced, so that it has no recorded schema. Nothing was changed. Its first"
        " run makes the target's table: bqh sync orders"
    )
