"""`bqh schema accept`: what changed is told until somebody says that it was seen."""

import pytest

from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets.validation.schema_drift import check_drift
from bq_harper_assets_tests.cli.typed import told, typed, typed_well
from bq_harper_assets_tests.schema.versions import of, seen
from bq_harper_assets_tests.temporary_project import TemporaryProject, hours_ago, table


@pytest.mark.promise("D3")
def test_a_dropped_column_is_told_until_it_is_accepted_and_no_server_is_asked(
    serverless: TemporaryProject,
) -> None:
    declared = table(TableRef("p", "shop", "orders"), hours_ago(4), key="number", live=False)
    project = serverless.declare(declared)
    [orders] = project.tables
    never = typed("schema", "accept", orders.id)
    assert "has no schema version yet" in str(never.exception)
    with open_ledger(project.ledger.url) as ledger:
        known = ledger.register_route(table_facts(orders, project.bigquery.project))
        first = seen(None, of("speed", Kind.STRING), of("name", Kind.STRING))
        ledger.record_schema(known, first.body(), 0)
        ledger.record_schema(known, seen(first, of("name", Kind.STRING)).body(), 1)
        assert "speed removed" in check_drift(ledger, orders).message
        shown = typed_well("schema", "accept", orders.id)
        assert f"{orders.id}: accepted from schema version 1 to 2\n" in shown
        assert "speed" in shown
        [note] = ledger.audit(known, 1)
        assert (note.kind, note.detail["version"]) == ("schema_accepted", 2)
    assert "nothing is new" in typed_well("schema", "accept", orders.id)
    again = told("schema", "accept", orders.id)
    assert (again["fromVersion"], again["toVersion"], again["changes"]) == (2, 2, [])
