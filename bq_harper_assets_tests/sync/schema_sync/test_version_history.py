"""A schema version says what it changed in the words of its day, whatever the contract says now."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute, RouteFacts, SchemaVersion
from bq_harper_assets.schema.change import Change
from bq_harper_assets.schema.changes import changes_between
from bq_harper_assets.schema.logical import Column, Kind, TableSchema
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.ledger_facts import changes_of, record_version, version_of
from bq_harper_assets_tests.schema.samples import TS, contract, schema

NUMBER, SPEED = Column(name="number", kind=Kind.INT64), Column(name="speed", kind=Kind.FLOAT64)
THEN = contract(key=("event_time",), backfill=True)
NOW = contract(key=("event_time",), backfill=False)


@pytest.fixture
def table(ledger: Ledger) -> LedgerRoute:
    facts = RouteFacts(
        name="orders",
        table="orders",
        source="s",
        target="Orders",
        timestamp_column="event_time",
        key=(),
        window=timedelta(hours=1),
        slices=1,
    )
    return ledger.register_route(facts)


def _recorded(ledger: Ledger, table: LedgerRoute, *sources: TableSchema) -> list[SchemaVersion]:
    for source in sources:
        seen = ledger.newest_schema(table)
        plan = harper_plan(THEN, source, version_of(seen))
        record_version(ledger, table, THEN, seen, plan, "ann", "a test")
    return list(ledger.schema_history(table))


@pytest.mark.promise("F1")
def test_a_version_keeps_the_words_and_the_source_of_its_day(
    ledger: Ledger, table: LedgerRoute
) -> None:
    sources = schema(NUMBER), schema(NUMBER, SPEED)
    first, second = _recorded(ledger, table, *sources)
    assert [each.source_fingerprint for each in (first, second)] == [
        source.fingerprint() for source in sources
    ]
    assert changes_of(first, None, NOW) == ()
    told = changes_between(version_of(first), version_of(second), THEN)
    (would_be_told,) = changes_between(version_of(first), version_of(second), NOW)
    assert changes_of(second, first, NOW) == told
    assert told != (would_be_told,)
    # A record of an earlier release, which kept neither.
    old = replace(second, changes=None, source_fingerprint=None)
    assert changes_of(old, first, NOW) == (would_be_told,)


def test_a_change_is_read_back_as_it_was_told(ledger: Ledger, table: LedgerRoute) -> None:
    text = Column(name="number", kind=Kind.STRING)
    first, second = _recorded(ledger, table, schema(NUMBER), schema(text, SPEED))
    told = changes_between(version_of(first), version_of(second), THEN)
    assert len(told) == 2
    assert tuple(Change.parse(each.body()) for each in told) == told


@pytest.mark.parametrize(
    "other",
    [
        TableSchema(columns=(NUMBER, TS)),
        TableSchema(columns=(TS, replace(NUMBER, kind=Kind.STRING))),
        TableSchema(columns=(TS, replace(NUMBER, repeated=True))),
        TableSchema(columns=(TS, replace(NUMBER, required=True))),
        TableSchema(columns=(TS, replace(NUMBER, description="of the hull"))),
        TableSchema(columns=(TS, NUMBER, SPEED)),
        TableSchema(columns=(TS, Column(name="number", kind=Kind.STRUCT, fields=(SPEED,)))),
        TableSchema(columns=(TS, NUMBER), partition_field="event_time"),
        TableSchema(columns=(TS, NUMBER), clustering=("number",)),
        TableSchema(columns=(TS, NUMBER), primary_key=("number",)),
    ],
)
def test_any_difference_of_two_sources_is_one_of_their_fingerprints(other: TableSchema) -> None:
    assert other.fingerprint() != schema(NUMBER).fingerprint()


def test_a_fingerprint_is_the_same_in_every_release() -> None:
    assert schema(NUMBER).fingerprint() == "71bee86215cf8ae5e408a4d439e6a35f"
