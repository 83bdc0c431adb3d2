"""Schema versions and the schema claim are copied as the ledger has them."""

from datetime import timedelta

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.verbs.claims import Claim
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.encoding.text_forms import stored_text
from bq_harper_assets.stores.harper.mirror.schemas import (
    mirror_claim,
    mirror_schemas,
    unmirror_claim,
)
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.ledger_facts import record_version, table_facts
from bq_harper_assets_tests.schema.samples import contract, schema
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper

ORDERS = contract()
SPEED = Column(name="speed", kind=Kind.STRING)


def test_each_version_has_a_row_with_its_columns_and_changes(
    memory: MemoryHarper, ledger: Ledger
) -> None:
    table = ledger.register_route(table_facts(ORDERS, "p"))
    first = harper_plan(ORDERS, schema())
    second = harper_plan(ORDERS, schema(SPEED), first.version)
    one = record_version(ledger, table, ORDERS, None, first, "somebody", "a sync")
    two = record_version(ledger, table, ORDERS, one, second, "me", "drift")
    with memory.client() as client:
        assert mirror_schemas(ledger, client, ORDERS) is None
    [row_of_one, row_of_two] = memory.rows("SchemaMetadata")
    assert row_of_two == {
        "id": "orders-2",
        "tableId": "orders",
        "version": 2,
        "recordedAt": stored_text(two.recorded_at),
        "recordedBy": "me",
        "cause": "drift",
        "columns": [column.body() for column in second.version.columns],
        "changes": row_of_two["changes"],
        "sourceFingerprint": second.source_fingerprint,
    }
    assert "speed" in str(row_of_two["changes"])
    assert (row_of_one["id"], row_of_one["recordedBy"]) == ("orders-1", "somebody")


def test_a_claim_is_there_until_it_is_released(memory: MemoryHarper, ledger: Ledger) -> None:
    claim = ledger.claim("schema_check", "host-1", timedelta(minutes=1))
    assert isinstance(claim, Claim)
    with memory.client() as client:
        assert mirror_claim(client, claim) is None
        assert memory.rows("SchemaLock") == [
            {
                "lockId": "schema_check",
                "nodeId": "host-1",
                "acquiredAt": stored_text(claim.acquired_at),
                "expiresAt": stored_text(claim.expires_at),
            }
        ]
        assert unmirror_claim(client, claim) is None
    assert memory.rows("SchemaLock") == []


def test_what_harper_does_not_take_is_a_warning_that_names_it(
    memory: MemoryHarper, ledger: Ledger
) -> None:
    ledger.register_route(table_facts(ORDERS, "p"))
    claim = ledger.claim("schema_check", "host-1", timedelta(minutes=1))
    assert isinstance(claim, Claim)
    memory.refuses = lambda asked: (403, {"error": "no"})
    with memory.client() as client:
        told = [mirror_schemas(ledger, client, ORDERS), mirror_claim(client, claim),
                unmirror_claim(client, claim)]  # fmt: skip
    whats = ("the schema versions of orders", "the claim schema_check", "the end of the claim sch")
    tables = ("SchemaMetadata", "SchemaLock", "SchemaLock")
    for each, what, table in zip(told, whats, tables, strict=True):
        assert each is not None
        assert each.startswith(what)
        assert f"could not be copied to Harper's table {table}: " in each
