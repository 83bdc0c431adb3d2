"""What the check of a table's schema says, from the ledger alone."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.verbs import schema_versions
from bq_harper_assets.ledger.verbs.audit import Note
from bq_harper_assets.schema.evolution import applied
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets.sync.schema_sync.version_history import version_steps
from bq_harper_assets.validation.schema_drift import DriftVerdict, accept_changes, check_drift
from bq_harper_assets.validation.verdict import Severity
from bq_harper_assets_tests.schema.samples import contract
from bq_harper_assets_tests.schema.versions import of, seen
from bq_harper_assets_tests.stores.small_tables import utc

SPEED, NAME, LOAD = (of(name, Kind.STRING) for name in ("speed", "name", "load"))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as opened:
        yield opened


@pytest.mark.promise("D3")
def test_a_column_that_is_gone_is_told_with_the_time_since_when_also_some_versions_later(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = contract(key=("number",))
    table = ledger.register_table(table_facts(orders, BigQueryConnection(project="p")))
    version: TableVersion | None = None
    schemas = [(SPEED, NAME), (NAME,), (NAME, LOAD), (LOAD,)]
    for number, columns in enumerate(schemas):
        at = utc(2026, 3, 1, 8) + timedelta(hours=number)
        monkeypatch.setattr(schema_versions, "database_now", lambda _, at=at: at)
        version = seen(version, *columns)
        ledger.record_schema(table, version.body(), number)
    gone = "{} removed (STRING): gone since 2026-03-01 {} UTC; left out from now on"
    told = check_drift(ledger, orders, told=1).message
    assert gone.format("speed", "09:00:00") in told
    assert gone.format("name", "11:00:00") in told
    assert "type: bqh schema accept orders" in told
    accept_changes(ledger, table, 3, "ann")
    told = check_drift(ledger, orders, told=3).message
    assert gone.format("name", "11:00:00") in told
    assert "speed" not in told


@pytest.mark.promise("D3")
def test_a_dropped_column_is_told_until_somebody_accepts_it_or_it_is_back(ledger: Ledger) -> None:
    orders = contract(key=("number",))
    table = ledger.register_table(table_facts(orders, BigQueryConnection(project="p")))
    version: TableVersion | None = None

    def seen_by_a_run(number: int, *columns: Column) -> DriftVerdict:
        nonlocal version
        version = seen(version, *columns)
        ledger.record_schema(table, version.body(), number - 1)
        ledger.record_audit(table, Note("schema", f"version {number}", "applied", {}))
        return check_drift(ledger, orders)

    assert seen_by_a_run(1, SPEED, NAME).passed
    gone = seen_by_a_run(2, NAME)
    assert (gone.passed, gone.severity) == (False, Severity.WARN)
    assert "speed removed (STRING)" in gone.message
    assert "bqh schema diff orders --from 1 --to 2" in gone.message
    assert "bqh schema accept orders" in gone.message
    # A column that is only added is followed, and hides nothing.
    later = seen_by_a_run(3, NAME, LOAD)
    assert "speed removed (STRING)" in later.message
    assert "load" not in later.message
    assert "--from 1 --to 3" in later.message
    accept_changes(ledger, table, 3, "ann")
    assert check_drift(ledger, orders).passed
    assert not seen_by_a_run(4, NAME).passed
    assert seen_by_a_run(5, NAME, LOAD).passed  # it is back


def test_a_harmless_change_of_a_column_does_not_hide_that_another_change_of_it_waits(
    ledger: Ledger,
) -> None:
    frozen = {"schema_policy": "freeze"}
    orders = contract(key=("number",), **frozen)
    table = ledger.register_table(table_facts(orders, BigQueryConnection(project="p")))
    street, zip_ = of("street", Kind.STRING), of("zip", Kind.STRING)
    first = seen(None, of("address", Kind.STRUCT, street))
    waits = seen(first, of("address", Kind.STRUCT, street, zip_), **frozen)
    longer = of("street", Kind.STRING, max_length=9)
    harmless = seen(waits, of("address", Kind.STRUCT, longer, zip_), **frozen)
    for number, version in enumerate((first, waits, harmless)):
        ledger.record_schema(table, version.body(), number)
    verdict = check_drift(ledger, orders, told=2)
    assert [change.severity for change in verdict.changes] == ["info", "error"]
    assert (verdict.passed, verdict.severity) == (False, Severity.ERROR)
    assert "not synced: the policy is freeze" in verdict.message


@pytest.mark.promise("F1")
def test_what_an_earlier_release_has_recorded_is_read_and_followed_on(ledger: Ledger) -> None:
    orders = contract(key=("number",), schema_policy="approve")
    table = ledger.register_table(table_facts(orders, BigQueryConnection(project="p")))
    street, zip_ = of("street", Kind.STRING), of("zip", Kind.STRING)
    wider = of("address", Kind.STRUCT, street, zip_)
    first = seen(None, of("address", Kind.STRUCT, street))
    body = seen(None, wider).body()
    body["columns"][-1]["fields"][1] |= {"state": "waiting", "written": False}
    told = {"before": "", "after": "", "action": "recorded", "severity": "info"}
    kinds = {"order": "", "clustering": "", "description": "address", "added": "address.zip"}
    changes = [{"kind": kind, "column": column, **told} for kind, column in kinds.items()]
    ledger.record_schema(table, first.body(), 0)
    ledger.record_schema(table, body, 1, changes=changes)
    _, second = version_steps(ledger, orders)
    assert [str(change) for change in second.changes] == ["address.zip added: recorded"]
    assert second.version == seen(first, wider, schema_policy="approve")
    waits = "STRUCT<street STRING> -> STRUCT<street STRING, zip STRING>): waits for: bqh schema"
    assert waits in check_drift(ledger, orders).message
    applied_since = applied(second.version)
    ledger.record_schema(table, applied_since.body(), 2)
    assert "synced into address.zip from now on" in check_drift(ledger, orders).message
