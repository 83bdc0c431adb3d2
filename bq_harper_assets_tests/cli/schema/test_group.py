"""`bqh schema` and `bqh read` over the life of one table: each version is seen, and readable."""

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest
from google.cloud import bigquery

from bq_harper_assets.cli.schema.decisions import decision_lines, waiting_name
from bq_harper_assets.cli.schema.group import column_rows
from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.changes import changes_between, waiting_changes
from bq_harper_assets.schema.evolution import applied
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.errors import NoSuchVersion
from bq_harper_assets.sync.schema_sync.requested_version import Decision
from bq_harper_assets_tests.cli.typed import told, typed, typed_well
from bq_harper_assets_tests.schema.samples import contract
from bq_harper_assets_tests.schema.versions import of, seen
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import HOUR, TemporaryProject, hours_ago, table

LISTS = ("addedColumns", "typeChanges", "indexChanges", "removedColumns", "renamed", "other")


@dataclass(kw_only=True)
class Ships:
    """A source whose columns change; each of its rows is the only one of its hour."""

    project: TemporaryProject
    tables: SmallTables
    source: TableRef
    start: datetime
    declared: dict[str, Any]

    @property
    def contract(self) -> TableContract:
        return self.project.declare(self.declared).tables[0]

    def becomes(self, columns: str, rows: int) -> None:
        """These columns, in which `n` is the row's number and `hour` its time."""
        self.tables.run(
            f"CREATE OR REPLACE TABLE {self.source.sql} AS SELECT n AS number, hour AS ts,"
            f" {columns} FROM (SELECT n, TIMESTAMP_ADD(TIMESTAMP '{self.start:%F %T}+00', INTERVAL"
            f" n HOUR) AS hour FROM UNNEST(GENERATE_ARRAY(0, {rows - 1})) AS n)"
        )

    def sync(self, hour: int) -> str:
        """One hour."""
        at = self.start + hour * HOUR
        return typed_well(
            "sync", self.contract.id, "--from", f"{at:%FT%H:%M}", "--to", f"{at + HOUR:%FT%H:%M}"
        )

    def ask(self, command: str, *options: str, code: int = 0) -> Any:
        return told("schema", command, self.contract.id, *options, code=code)

    def say(self, command: str, *options: str, code: int = 0) -> str:
        return typed_well("schema", command, self.contract.id, *options, code=code)

    def rows(self, version: int) -> list[dict[str, Any]]:
        """Without number and time, which are looked at here."""
        name = self.contract.id
        rows = told("read", name, "--schema-version", str(version))["rows"]
        for row in rows:
            at = self.start + row.pop("number") * HOUR
            assert row.pop("ts") == f"{at:%FT%T}.000000Z"
        return rows


@pytest.fixture
def ships(project: TemporaryProject, tables: SmallTables) -> Ships:
    start = hours_ago(9)
    source = tables.new_name()
    return Ships(
        project=project,
        tables=tables,
        source=source,
        start=start,
        declared=table(source, start, key=["number"]),
    )


def changed(diff: dict[str, Any]) -> dict[str, list[str]]:
    """The columns in each list, as far as there are any."""
    return {name: [each["column"] for each in diff[name]] for name in LISTS if diff[name]}


FIRST = "CAST(10 + n AS STRING) AS speed, 'Batavia' AS name, 'n' AS notes"
TRIP = "STRUCT(n AS leg, ['a'] AS via) AS trip"
ADDED = f"{TRIP}, n AS crew_id, ['x'] AS tags"
FOURTH = f"10 + n AS speed, 'Batavia' AS vessel, {ADDED}"


def trip(leg: int) -> dict[str, Any]:
    return {"leg": leg, "via": ["a"]}


@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.spark
@pytest.mark.promise("A5", "C2", "D2", "D3", "F1", "F2", "F3", "F5", "N8")
def test_the_versions_of_a_table_are_shown_compared_rolled_back_and_read(
    ships: Ships, harper_connection: HarperConnection
) -> None:
    name = ships.contract.id
    ships.becomes(f"{FIRST}, {TRIP}", rows=1)
    never = ships.say("show")
    assert f"{name} was never synced; its first sync records this as schema version 1\n" in never
    assert f"the first: bqh sync {name}" in ships.say("history")
    assert isinstance(typed("schema", "diff", name).exception, NoSuchVersion)
    ships.sync(0)

    ships.becomes(f"{FIRST}, {ADDED}", rows=1)
    ahead = ships.ask("diff")
    assert changed(ahead) == {"addedColumns": ["crew_id", "tags"]}
    assert (ahead["fromVersion"], ahead["toVersion"], ahead["equal"]) == (1, None, False)
    assert "  + crew_id added (INT64): synced into crew_id" in ships.say("diff")
    assert len(ships.ask("history")["versions"]) == 1  # a diff records nothing
    assert ships.ask("apply", "--yes")["version"] == 2
    assert ships.ask("diff")["equal"] is True
    assert ships.say("diff") == f"{name}: schema version 2 and what BigQuery has now are equal\n"

    ships.becomes(f"{FIRST.replace('CAST(10 + n AS STRING)', '10 + n')}, {ADDED}", rows=2)
    ships.sync(1)
    ships.declared["renames"] = {"name": "vessel"}
    ships.becomes(FOURTH, rows=3)
    assert "went on" not in ships.sync(2)

    history = ships.ask("history")["versions"]
    assert [(each["version"], changed(each)) for each in history] == [
        (1, {}),
        (2, {"addedColumns": ["crew_id", "tags"]}),
        (3, {"typeChanges": ["speed"]}),
        (4, {"removedColumns": ["notes"], "renamed": ["vessel"]}),
    ]
    assert [each["cause"] for each in history][:2] == ["first sync", "applied"]
    assert all(each["by"] and each["recorded_at"] for each in history)
    assert len({each["source_fingerprint"] for each in history} - {None}) == 4
    text = ships.say("history")
    assert "\nversion 4: 7 columns, " in text
    assert "  ~ speed retyped (STRING -> INT64): synced into speed_v2" in text
    assert changed(ships.ask("diff", "--from", "1", "--to", "4")) == {
        "addedColumns": ["crew_id", "tags"],
        "typeChanges": ["speed"],
        "removedColumns": ["notes"],
        "renamed": ["vessel"],
    }
    assert changed(ships.ask("diff", "--to", "3")) == {"typeChanges": ["speed"]}
    wrong = typed("schema", "diff", name, "--from", "3", "--to", "2")
    assert (wrong.exit_code, "must be an earlier version" in wrong.stderr) == (2, True)
    assert isinstance(typed("schema", "show", name, "--version", "9").exception, NoSuchVersion)
    _see_how_versions_are_shown(ships)

    first = [
        {"speed": str(10 + n), "name": "Batavia", "notes": "n" if n < 2 else None, "trip": trip(n)}
        for n in range(3)
    ]
    fourth = [
        {
            "speed": 10 + n,
            "vessel": "Batavia",
            "trip": trip(n),
            "crew_id": n if n else None,
            "tags": ["x"] if n else [],
        }
        for n in range(3)
    ]
    assert (ships.rows(1), ships.rows(4)) == (first, fourth)
    assert [row["speed"] for row in ships.rows(2)] == ["10", "11", "12"]
    assert [row["notes"] for row in ships.rows(3)] == ["n", "n", None]
    part = f"{ships.start + HOUR:%FT%H:%M}", f"{ships.start + 3 * HOUR:%FT%H:%M}"
    text = typed_well("read", name, "--from", part[0], "--to", part[1])
    assert text.splitlines()[0].split() == [
        "number", "ts", "speed", "vessel", "trip", "crew_id", "tags",
    ]  # fmt: skip
    assert text.endswith(f"2 rows of {name} as schema version 4\n")

    with HarperClient(harper_connection) as harper:
        target = ships.contract.target.table
        before = {row["id"]: row for row in harper.search_by_value(target, "ts", "*")}
        assert [before[n].get("speed") for n in range(3)] == ["10", None, None]
        assert [before[n].get("speed_v2") for n in range(3)] == [None, 11, 12]

        would = ships.say("rollback", "--to", "1")
        assert f"{name}: schema version 4 would be followed by another\n" in would
        assert "  - crew_id set aside (INT64): " in would
        assert "  ! notes stays as it is: BigQuery has no STRING of that name any more\n" in would
        assert f"to do it, type: bqh schema rollback {name} --to 1 --yes\n" in would
        assert len(ships.ask("history")["versions"]) == 4
        done = ships.ask("rollback", "--to", "1", "--yes")
        assert (done["version"], done["recorded"], done["harper"]["added"]) == (5, True, [])
        assert changed(done) == {"removedColumns": ["speed", "crew_id", "tags"]}
        assert ships.ask("history")["versions"][-1]["cause"] == "rollback to 1"
        assert f"what waits is synced after: bqh schema apply {name}\n" in ships.say("show")
        ships.becomes(FOURTH, rows=4)
        ships.sync(3)
        [row] = harper.search_by_id(target, [3])
        assert {"speed_v2", "crew_id", "tags", "notes", "speed"}.isdisjoint(
            attribute for attribute, value in row.items() if value is not None
        )

        forward = ships.ask("rollback", "--to", "4")
        assert changed(forward) == {"addedColumns": ["speed", "crew_id", "tags"]}
        would = ships.say("apply")
        assert "  + crew_id applied (INT64): synced into crew_id" in would
        assert f"nothing was changed; to do it, type: bqh schema apply {name} --yes\n" in would
        done = ships.say("apply", "--yes")
        assert f"{name}: schema version 6 is recorded\n" in done
        assert done.endswith(f"the next sync writes rows of this version: bqh sync {name}\n")
        assert f"{name} stays as schema version 6 has it: nothing to change" in ships.say("apply")
        after = {row["id"]: row for row in harper.search_by_value(target, "ts", "*")}
        assert {n: after[n] for n in before} == before  # neither way touched a row
    back = {"speed": None, "vessel": "Batavia", "trip": trip(3), "crew_id": None, "tags": []}
    assert ships.rows(6) == ships.rows(4) == [*fourth, back]

    ships.declared["schemaPolicy"] = "approve"
    ships.declared["schemaOverrides"] = {"flag": {"policy": "freeze"}}
    ships.becomes(f"{FOURTH}, n AS port_id, TRUE AS flag", rows=5)
    waiting = ships.ask("diff")["waiting"]
    severities = {each["column"]: each["severity"] for each in waiting}
    assert severities == {"port_id": "warn", "flag": "error"}
    assert f"not synced yet: port_id, flag; see: bqh schema apply {name}\n" in ships.say("diff")
    applied = ships.ask("apply", "--yes")
    assert (applied["version"], applied["harper"]["added"]) == (7, ["port_id"])
    assert [each["column"] for each in applied["waiting"]] == ["flag"]
    assert (
        "went on with the columns it has: flag added (BOOL): not synced: the policy is freeze; undo"
        f" the change in BigQuery, or set the policy to approve and type: bqh schema apply {name}\n"
    ) in ships.sync(4)
    assert [(row["speed"], row["port_id"]) for row in ships.rows(7)] == [
        (10, None), (11, None), (12, None), (None, None), (14, 4),
    ]  # fmt: skip
    _see_what_is_kept_and_how(ships)
    _see_what_cannot_be_followed(ships)


def _see_how_versions_are_shown(ships: Ships) -> None:
    shown = ships.ask("show", "--version", "1")
    assert [(c["source"], c["kind"], c["name"]) for c in shown["columns"]][2:] == [
        ("speed", "STRING", "speed"),
        ("name", "STRING", "name"),
        ("notes", "STRING", "notes"),
        ("trip", "STRUCT", "trip"),
    ]
    lines = ships.say("show").splitlines()
    assert lines[1] == "key: number; Harper's primary key: id"
    cells = {line.split()[0]: line.split() for line in lines[3:]}
    assert cells["vessel"] == ["vessel", "STRING", "NULLABLE", "name", "String"]
    assert cells["trip.leg"] == ["trip.leg", "INT64", "NULLABLE"]
    assert cells["crew_id"] == ["crew_id", "INT64", "NULLABLE", "crew_id", "Long", "yes"]
    assert cells["notes"] == ["notes", "STRING", "NULLABLE", "notes", "String", "retired"]


def _see_what_is_kept_and_how(ships: Ships) -> None:
    kept = ships.ask("cleanup")["retired"]
    assert [(c["attribute"], c["type"], c["since_version"], c["now_in"]) for c in kept] == [
        ("speed", "STRING", 3, "speed_v2"),
        ("notes", "STRING", 4, None),
    ]
    operation = {
        "operation": "drop_attribute",
        "database": "data",
        "table": ships.contract.target.table,
        "attribute": "speed",
    }
    assert kept[0]["operation"] == operation
    assert f"  {json.dumps(operation)}\n" in ships.say("cleanup")
    indexes = {each["column"]: each for each in ships.ask("indexes")["indexes"]}
    assert indexes["ts"]["reason"] == "timestampColumn"
    for column in ("crew_id", "port_id"):
        assert (indexes[column]["reason"], indexes[column]["in_harper"]) == ("name:_id", True)
    assert (indexes["speed"]["attribute"], indexes["speed"]["indexed"]) == ("speed_v2", False)
    types = {each["column"]: each for each in ships.ask("types")["types"]}
    assert (types["speed"]["harper"], types["tags"]["harper"]) == ("Long", "Any")
    assert types["trip"]["bigquery"] == "STRUCT<leg INT64, via ARRAY<STRING>>"
    assert types["trip.via"]["values"] == "text"


def _see_what_cannot_be_followed(ships: Ships) -> None:
    ships.declared["schemaOverrides"] = {"vessel": {"type": "number"}}
    refused = ships.ask("diff", code=2)
    assert changed(refused) == {}
    assert "vessel is STRING in BigQuery, which cannot be stored as number" in refused["problem"]
    text = ships.say("diff", code=2)
    assert text.startswith(f"{ships.contract.id} cannot follow what BigQuery has now:\n  ! schema")
    assert text.endswith("Harper keeps all rows as they are, and no sync changes them until then\n")


@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.promise("A5")
def test_partitioning_and_clustering_are_shown_in_the_terminal_before_the_first_sync(
    ships: Ships,
) -> None:
    field = bigquery.SchemaField
    described = bigquery.Table(
        str(ships.source),
        schema=[
            field("number", "INT64", mode="REQUIRED"),
            field("ts", "TIMESTAMP"),
            field("port", "STRING"),
            field("legs", "RECORD", mode="REPEATED", fields=[field("n", "INT64")]),
        ],
    )
    described.time_partitioning = bigquery.TimePartitioning(field="ts")
    described.clustering_fields = ["port", "number"]
    ships.tables.queries.client.create_table(described)
    shown = ships.say("show")
    assert "partitioned by ts\n" in shown
    assert "clustered by port, number\n" in shown
    assert "REQUIRED" in shown
    assert "legs.n" in shown


def test_a_synced_column_shows_which_of_its_new_fields_wait() -> None:
    leg, via, stop = of("leg", Kind.INT64), of("via", Kind.STRING), of("stop", Kind.STRUCT)
    inner = replace(stop, fields=(leg,))
    first = seen(None, of("trip", Kind.STRUCT, leg, inner))
    wider = of("trip", Kind.STRUCT, leg, replace(inner, fields=(leg, via)), via)
    waits = seen(first, wider, schema_policy="approve")
    states = {row[0]: row[6] for row in column_rows(waits) if row[0].startswith("trip")}
    assert states == {
        "trip": "new fields wait",
        "trip.leg": "",
        "trip.stop": "",
        "trip.stop.leg": "",
        "trip.stop.via": "waiting",
        "trip.via": "waiting",
    }
    assert {row[6] for row in column_rows(applied(waits))} == {""}


def test_new_fields_that_wait_are_not_told_as_if_their_column_were_not_synced() -> None:
    leg, via = of("leg", Kind.INT64), of("via", Kind.STRING)
    policy = {"schema_policy": "approve"}
    first = seen(None, of("trip", Kind.STRUCT, leg))
    waits = seen(first, of("trip", Kind.STRUCT, leg, via), of("notes", Kind.STRING), **policy)
    names = [*map(waiting_name, waiting_changes(waits, contract(**policy)))]
    assert names == ["new fields of trip", "notes"]


def test_a_version_that_changes_only_a_description_is_told_as_recorded() -> None:
    notes = of("notes", Kind.STRING)
    first = seen(None, notes)
    described = seen(first, replace(notes, description="by hand"))
    changes = changes_between(first, described, contract())
    decision = Decision(changes=changes, waiting=(), version=2, is_recorded=True, schema=described)
    assert [*decision_lines("ships", decision)] == [
        "ships: schema version 2 is recorded",
        "  ~ nothing that rows depend on, such as descriptions, order or clustering",
    ]
    only_shown = replace(decision, version=1, is_recorded=False)
    assert [*decision_lines("ships", only_shown)] == [
        "ships stays as schema version 1 has it: nothing to change"
    ]
