"""What `bqh schema diff`, `apply` and `rollback` say, by a BigQuery that answers by hand."""

from collections.abc import Sequence
from typing import Any

from bq_harper_assets.cli.schema.decisions import decision_lines, waiting_name
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.schema.change import Change, ChangeKind
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets.sync.schema_sync.requested_version import Decision
from bq_harper_assets_tests.cli.conftest import ByHand
from bq_harper_assets_tests.cli.typed import told, typed, typed_well
from bq_harper_assets_tests.schema.versions import of, seen
from bq_harper_assets_tests.stores.bigquery.by_hand import described
from bq_harper_assets_tests.temporary_project import hours_ago, table

SPEED, NAME = of("speed", Kind.STRING), of("name", Kind.STRING)
TYPES = {Kind.INT64: "INTEGER"}


def has(by_hand: ByHand, *columns: Column) -> None:
    """These columns in BigQuery, beside the time and the key."""
    known = (of("event_time", Kind.TIMESTAMP), of("number", Kind.INT64), *columns)
    fields = [{"name": each.name, "type": TYPES.get(each.kind, each.kind.value)} for each in known]
    by_hand.bigquery.tables = described("shop", "orders", schema={"fields": fields})


def record(by_hand: ByHand, *looks: Sequence[Column], **declared: Any) -> None:
    """A version for each look at these columns."""
    known = {"id": "orders", "targetTable": "Orders", "key": ["number"]}
    source = TableRef("p", "shop", "orders")
    orders = table(source, hours_ago(3), **{**known, "timestampColumn": "event_time", **declared})
    project = by_hand.project.declare(orders)
    with open_ledger(project.ledger.url) as ledger:
        route = ledger.register_route(table_facts(project.tables[0], project.bigquery.project))
        version = None
        for at, columns in enumerate(looks):
            version = seen(version, *columns, schema_policy=declared.get("schemaPolicy", "evolve"))
            ledger.record_schema(route, version.body(), at)


def versions(by_hand: ByHand) -> int:
    project = by_hand.project
    with open_ledger(f"sqlite:///{project.root / '.local' / 'ledger.db'}") as ledger:
        route = ledger.find_route("orders")
        assert route is not None
        return len(ledger.schema_history(route))


def test_the_newest_version_is_compared_with_what_bigquery_has_now(by_hand: ByHand) -> None:
    record(by_hand, [SPEED], [SPEED, NAME])
    has(by_hand, SPEED, NAME)
    assert typed_well("schema", "diff", "orders") == (
        "orders: schema version 2 and what BigQuery has now are equal\n"
    )
    has(by_hand, SPEED, of("crew", Kind.INT64))
    shown = typed_well("schema", "diff", "orders").splitlines()
    assert shown[0] == "orders: from schema version 2 to what BigQuery has now"
    assert [line.split()[:3] for line in shown[1:-1]] == [
        ["+", "crew", "added"],
        ["-", "name", "removed"],
    ]
    assert shown[-1] == "recorded by the next look or sync: bqh sync orders"
    programs = told("schema", "diff", "orders")
    assert (programs["fromVersion"], programs["toVersion"], programs["equal"]) == (2, None, False)
    assert [each["column"] for each in programs["addedColumns"]] == ["crew"]
    assert versions(by_hand) == 2


def test_two_recorded_versions_are_compared_without_asking_bigquery(by_hand: ByHand) -> None:
    record(by_hand, [SPEED], [SPEED, NAME], [NAME])
    for options, shown in (
        (("--to", "2"), ("1", "2", ["+ name"])),
        (("--to", "3"), ("2", "3", ["- speed"])),
        (("--from", "1", "--to", "3"), ("1", "3", ["+ name", "- speed"])),
    ):
        first, *changes = typed_well("schema", "diff", "orders", *options).splitlines()
        assert first == f"orders: from schema version {shown[0]} to version {shown[1]}"
        assert sorted(" ".join(line.split()[:2]) for line in changes) == sorted(shown[2])
    programs = told("schema", "diff", "orders", "--to", "3")
    assert (programs["fromVersion"], programs["toVersion"]) == (2, 3)
    for options in (("--to", "1"), ("--from", "2", "--to", "2"), ("--from", "3", "--to", "2")):
        ended = typed("schema", "diff", "orders", *options)
        assert ended.exit_code == 2
        assert "--from must be an earlier version" in ended.stderr


def test_what_cannot_be_followed_is_a_failure_with_its_reasons(by_hand: ByHand) -> None:
    record(by_hand, [SPEED])
    has(by_hand)
    by_hand.bigquery.tables = described(
        "shop", "orders", schema={"fields": [{"name": "number", "type": "INTEGER"}]}
    )
    shown = typed_well("schema", "diff", "orders", code=2).splitlines()
    assert shown[0] == "orders cannot follow what BigQuery has now:"
    assert all(line.startswith("  ! ") for line in shown[1:-1])
    assert len(shown) >= 3
    programs = told("schema", "diff", "orders", code=2)
    assert (programs["fromVersion"], programs["equal"]) == (1, False)
    assert "event_time" in programs["problem"]


def test_what_waits_is_named_with_the_command_that_takes_it(by_hand: ByHand) -> None:
    record(by_hand, [SPEED], schemaPolicy="approve")
    has(by_hand, SPEED, NAME)
    shown = typed_well("schema", "diff", "orders").splitlines()
    assert shown[-1] == "not synced yet: name; see: bqh schema apply orders"
    assert not any("next look" in line for line in shown)


def no_answer_of_harper(by_hand: ByHand) -> None:
    assert {seen.operation for seen in by_hand.harper.seen()} <= {"user_info"}  # a log-in


def test_an_apply_shows_first_and_records_nothing(by_hand: ByHand) -> None:
    record(by_hand, [SPEED], schemaPolicy="approve")
    has(by_hand, SPEED, NAME)
    shown = typed_well("schema", "apply", "orders").splitlines()
    assert shown[0] == "orders: schema version 1 would be followed by another"
    assert shown[-1] == "nothing was changed; to do it, type: bqh schema apply orders --yes"
    assert versions(by_hand) == 1
    no_answer_of_harper(by_hand)
    programs = told("schema", "apply", "orders")
    assert (programs["version"], programs["recorded"], programs["harper"]) == (1, False, None)
    assert [each["column"] for each in programs["addedColumns"]] == ["name"]


def test_a_rollback_shows_what_it_would_do_and_what_it_cannot(by_hand: ByHand) -> None:
    record(by_hand, [SPEED], [SPEED, NAME], [NAME])
    has(by_hand, NAME)
    shown = typed_well("schema", "rollback", "orders", "--to", "1").splitlines()
    assert "  ! speed stays as it is: BigQuery has no STRING of that name any more" in shown
    assert shown[-1] == (
        "nothing was changed; to do it, type: bqh schema rollback orders --to 1 --yes"
    )
    assert versions(by_hand) == 3
    notes = told("schema", "rollback", "orders", "--to", "1")["notes"]
    assert notes == ["speed stays as it is: BigQuery has no STRING of that name any more"]


def change(kind: ChangeKind, column: str) -> Change:
    return Change(kind=kind, column=column, before="", after="STRING", action="synced into it")


def decision(*changes: Change, is_recorded: bool) -> Decision:
    version = seen(None, SPEED)
    return Decision(version=3, schema=version, changes=changes, waiting=(), is_recorded=is_recorded)


def test_a_decision_says_whether_it_is_recorded() -> None:
    added = change(ChangeKind.ADDED, "name")
    assert list(decision_lines("orders", decision(is_recorded=False))) == [
        "orders stays as schema version 3 has it: nothing to change"
    ]
    assert next(decision_lines("orders", decision(is_recorded=True))) == (
        "orders: schema version 3 is recorded"
    )
    first, second = decision_lines("orders", decision(added, is_recorded=False))
    assert first == "orders: schema version 3 would be followed by another"
    assert second.startswith("  + name added")


def test_what_waits_inside_a_column_is_called_its_new_fields() -> None:
    assert waiting_name(change(ChangeKind.WIDENED, "trip")) == "new fields of trip"
    assert waiting_name(change(ChangeKind.ADDED, "trip")) == "trip"
