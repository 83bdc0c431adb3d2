"""What the check of a table's schema says, from the ledger alone."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.verbs import schema_versions
from bq_harper_assets.ledger.verbs.audit import Note
from bq_harper_assets.schema.change import Change, ChangeKind
from bq_harper_assets.schema.evolution import applied
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets.sync.schema_sync.version_history import version_steps
from bq_harper_assets.validation.schema_drift import (
    DriftVerdict,
    accept_changes,
    as_markdown,
    check_drift,
)
from bq_harper_assets.validation.verdict import Severity
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.schema.samples import contract
from bq_harper_assets_tests.schema.versions import of, seen
from bq_harper_assets_tests.stores.small_tables import utc

SPEED, NAME, LOAD = (of(name, Kind.STRING) for name in ("speed", "name", "load"))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(empty_ledger(tmp_path / "ledger.db")) as opened:
        yield opened


@pytest.mark.promise("D3")
def test_a_column_that_is_gone_is_told_with_the_time_since_when_also_some_versions_later(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = contract(key=("number",))
    table = ledger.register_route(table_facts(orders, "p"))
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
    table = ledger.register_route(table_facts(orders, "p"))
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
    table = ledger.register_route(table_facts(orders, "p"))
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
    table = ledger.register_route(table_facts(orders, "p"))
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


class Story:
    """A table whose versions are recorded one after the other, and applied to Harper or not yet."""

    def __init__(self, ledger: Ledger, **declared: Any) -> None:
        self.ledger, self.declared = ledger, declared
        self.orders = contract(key=("number",), **declared)
        facts = table_facts(self.orders, "p")
        self.table = ledger.register_route(facts)
        self.versions: list[TableVersion] = []

    def goes_on(self, *columns: Column, applied: bool = True) -> "Story":
        before = self.versions[-1] if self.versions else None
        number = len(self.versions) + 1
        self.versions.append(seen(before, *columns, **self.declared))
        self.ledger.record_schema(self.table, self.versions[-1].body(), number - 1)
        if applied:
            note = Note("schema", f"version {number}", "applied", {})
            self.ledger.record_audit(self.table, note)
        return self

    def check(self, told: int = 0, problem: str | None = None) -> DriftVerdict:
        return check_drift(self.ledger, self.orders, told, problem)


def test_a_table_that_was_never_synced_is_told_so_or_why_it_cannot_be(ledger: Ledger) -> None:
    never = DriftVerdict(
        message="never synced; the first run records its schema: bqh sync orders", version=0
    )
    assert check_drift(ledger, contract(key=("number",))) == never
    registered = Story(ledger)
    assert registered.check() == never
    assert (never.signature, never.is_due) == ("0 passed", False)
    broken = registered.check(problem="no such table")
    assert broken == DriftVerdict(
        message="no such table", version=0, passed=False, severity=Severity.ERROR
    )
    assert broken.signature == "0 error no such table"


def test_a_source_that_cannot_be_followed_is_an_error_whatever_is_known(ledger: Ledger) -> None:
    story = Story(ledger).goes_on(SPEED).goes_on(NAME)
    assert story.check(problem="it has no key") == DriftVerdict(
        message="it has no key", version=2, passed=False, severity=Severity.ERROR
    )


@pytest.mark.parametrize(
    ("declared", "columns", "applied", "is_due"),
    [
        ({}, [(SPEED,)], False, True),  # the table has to be made
        ({}, [(SPEED,)], True, False),
        ({}, [(SPEED,), (SPEED, NAME)], False, True),
        ({}, [(SPEED,), (SPEED, NAME)], True, False),
        ({}, [(SPEED,), ()], False, True),
        ({"schema_policy": "approve"}, [(SPEED,), (SPEED, NAME)], False, False),
        ({"schema_policy": "approve"}, [(SPEED,), (NAME,)], False, True),
    ],
)
def test_a_version_is_due_in_harper_unless_all_of_it_waits_for_a_person(
    ledger: Ledger,
    declared: dict[str, str],
    columns: list[tuple[Column, ...]],
    applied: bool,
    is_due: bool,
) -> None:
    story = Story(ledger, **declared)
    for each in columns[:-1]:
        story.goes_on(*each)
    assert story.goes_on(*columns[-1], applied=applied).check().is_due is is_due


def test_all_that_came_since_the_version_that_was_told_is_new(ledger: Ledger) -> None:
    story = Story(ledger).goes_on().goes_on(SPEED)
    assert story.check().message == "as in BigQuery: schema version 2"
    story.goes_on(SPEED, NAME).goes_on(SPEED, NAME, LOAD, applied=False)
    columns = {told: [c.column for c in story.check(told).changes] for told in range(5)}
    assert columns == {
        0: ["load"],
        1: ["speed", "name", "load"],
        2: ["name", "load"],
        3: ["load"],
        4: ["load"],
    }
    verdict = story.check(2)
    assert (verdict.passed, verdict.severity, verdict.signature) == (
        *(False, Severity.WARN),
        "4 warn",
    )
    assert verdict.message.endswith(". See it with: bqh schema diff orders --from 2 --to 4")


def test_what_waits_is_told_though_nothing_is_new(ledger: Ledger) -> None:
    story = Story(ledger, schema_policy="freeze").goes_on().goes_on(SPEED)
    accept_changes(ledger, story.table, 2, "ann")
    verdict = story.check()
    assert (verdict.passed, verdict.severity, verdict.is_due) == (False, Severity.ERROR, False)
    assert [change.column for change in verdict.changes] == ["speed"]
    assert verdict.message.endswith("See it with: bqh schema diff orders")


def test_changes_are_shown_as_a_table() -> None:
    change = Change(
        kind=ChangeKind.PRIMARY_KEY,
        column="",
        before="",
        after="ARRAY<INT64>",
        action="recorded",
    )
    of_column = replace(change, kind=ChangeKind.ADDED, column="tags")
    assert as_markdown([change, of_column]) == (
        "| column | change | before | now | what is done |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| (table) | primary key |  | `ARRAY<INT64>` | recorded |\n"
        "| tags | added |  | `ARRAY<INT64>` | recorded |"
    )
