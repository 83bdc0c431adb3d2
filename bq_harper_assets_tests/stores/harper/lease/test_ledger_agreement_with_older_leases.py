"""Leases in Harper that an earlier release wrote."""

import uuid
from dataclasses import replace

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.lease import ledger_agreement
from bq_harper_assets.stores.harper.lease.send_deadline import mirror_id
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets_tests.schema.samples import contract


@pytest.mark.harper
@pytest.mark.bigquery
def test_a_table_of_leases_that_was_made_before_one_of_its_attributes_can_be_read(
    harper_connection: HarperConnection,
    bigquery_connection: BigQueryConnection,
    ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    types = {
        name: type_
        for name, type_ in ledger_agreement.MIRRORED_LEASES.types.items()
        if name != "batch"
    }
    older = replace(
        ledger_agreement.MIRRORED_LEASES, name=f"Lease{uuid.uuid4().hex[:12]}", types=types
    )
    monkeypatch.setattr(ledger_agreement, "MIRRORED_LEASES", older)
    table = ledger.register_route(table_facts(contract(), bigquery_connection.project))
    row = {"id": mirror_id(table.facts.target, 0), "ledger": "x", "epoch": 3, "deadline": 1.5}
    with HarperClient(harper_connection) as harper:
        older.create(harper)
        harper.upsert(older.name, [row])
        assert ledger_agreement.copies_of(harper, table) == [
            ledger_agreement.Copy(slice=0, ledger="x", epoch=3, batch=None, deadline=1.5)
        ]
