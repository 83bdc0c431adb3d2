"""`bqh adopt` and what follows: tables that a component declares, with rows in them."""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import Mode
from bq_harper_assets.local.stack import LocalStack
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.encoding.text_forms import stored_text
from bq_harper_assets_tests.cli.typed import told, typed, typed_well
from bq_harper_assets_tests.conftest import PROJECT_ROOT, environ_without_settings
from bq_harper_assets_tests.empty_dagster import empty_dagster
from bq_harper_assets_tests.fault_proxy import FaultProxy
from bq_harper_assets_tests.stores.harper_clients import deployed
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import HOUR, TemporaryProject, hours_ago, table

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
MINUTES = timedelta(minutes=3)
CHANGES = {"create_table", "create_attribute", "upsert", "insert", "delete"}
COMPONENT = {
    "config.yaml": "graphqlSchema:\n  files: '*.graphql'\njsResource:\n  files: resources.js\n",
    "schema.graphql": """
type VesselPositions @table {
  id: Long @primaryKey
  ts: String @indexed
  number: Long
  name: String!
  note: String
}
type Mismatched @table { key: ID @primaryKey  ts: Date @indexed  number: Int }
type Ingested @table { id: ID @primaryKey }
type SyncCheckpoint @table {
  checkpointId: String! @primaryKey
  tableId: String!
  nodeId: Int!
  lastTimestamp: String!
  recordsIngested: Long!
  lastSyncTime: String!
  phase: String!
  batchSize: Int!
}
""",
    # As the plugin stores a row: its time is a date, not a text.
    "resources.js": """
import { tables } from 'harperdb';
await tables.Ingested.put({ id: '4711', ts: new Date('2026-01-05T07:00:00.123Z'), number: 1 });
""",
}


@pytest.fixture(scope="module")
def component_harper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackAddresses]:
    """A Harper of its own: its tables have the names that other tests expect of the product."""
    stack = LocalStack(
        PROJECT_ROOT,
        tmp_path_factory.mktemp("component"),
        preferred={},
        threads=1,
        environ=environ_without_settings(),
    )
    try:
        addresses = stack.up(print, servers=["harper"])
        with HarperClient(connection_to(addresses)) as harper:
            deployed(connection_to(addresses), "fleet", COMPONENT)
            deadline = time.monotonic() + 60
            while not _is_loaded(harper):
                assert time.monotonic() < deadline, "the component was not loaded within a minute"
                time.sleep(0.2)
        yield addresses
    finally:
        stack.purge(print)


def _is_loaded(harper: HarperClient) -> bool:
    try:
        found = harper.describe_table("Ingested")
    except BqhError:
        return False  # its threads are restarting
    return found is not None and found.record_count == 1


def connection_to(addresses: StackAddresses) -> HarperConnection:
    password = addresses.harper_password_file.read_text(encoding="ascii")
    return HarperConnection(
        url=addresses.harper_url, user=addresses.harper_user, password=SecretStr(password)
    )


@pytest.fixture
def proxy(component_harper: StackAddresses) -> Iterator[FaultProxy]:
    with FaultProxy(component_harper.harper_url) as running:
        yield running


@pytest.fixture
def project(
    tmp_path: Path,
    project_root: Path,
    stack: StackAddresses,
    component_harper: StackAddresses,
    proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> TemporaryProject:
    """On the shared emulator and the component's Harper."""
    monkeypatch.setenv("BQH_HOME", str(tmp_path / "project"))
    monkeypatch.setenv("DAGSTER_HOME", empty_dagster(tmp_path / "dagster"))
    known = {"harper_password_file": component_harper.harper_password_file}
    addresses = stack.model_copy(update=known | {"harper_url": proxy.url})
    return TemporaryProject.at(tmp_path / "project", project_root, addresses)


def ships(start: datetime, first: int = 0) -> str:
    return (
        "SELECT n AS number, CONCAT('ship ', CAST(n AS STRING)) AS name,"
        f" TIMESTAMP_ADD(TIMESTAMP '{start:%F %T}+00', INTERVAL n * 3 MINUTE) AS ts"
        f" FROM UNNEST(GENERATE_ARRAY({first}, 59)) AS n"
    )


def by_hand(start: datetime, n: int, **values: Any) -> dict[str, Any]:
    row = {"id": n, "number": n, "name": f"ship {n}", "ts": stored_text(start + n * MINUTES)}
    return row | values


def checkpoint(table_id: str, node: int, last: datetime) -> dict[str, Any]:
    return {
        "checkpointId": f"{table_id}_{node}",
        "tableId": table_id,
        "nodeId": node,
        "lastTimestamp": f"{last:%FT%T}.000000000Z",
        "recordsIngested": 500,
        "lastSyncTime": f"{last:%FT%T}.000Z",
        "phase": "steady",
        "batchSize": 500,
    }


def changes(proxy: FaultProxy, target: str) -> list[str | None]:
    return [s.operation for s in proxy.seen(table=target) if s.operation in CHANGES]


@pytest.mark.promise("A14")
def test_a_component_s_table_is_looked_at_proved_taken_over_and_mended_but_never_created(
    project: TemporaryProject,
    proxy: FaultProxy,
    tables: SmallTables,
    component_harper: StackAddresses,
) -> None:
    start = hours_ago(6)
    source = tables.make_from(ships(start, first=-20))
    held = {"targetTable": "VesselPositions", "key": ["number"], "sync": None}
    contract = table(source, start, **held)
    other = table(tables.make_from(ships(start)), start)
    name, target = contract["id"], "VesselPositions"
    project.declare(contract, other)
    with HarperClient(connection_to(component_harper)) as harper:
        rows = [by_hand(start, n) for n in range(40)]
        rows[5]["name"], rows[7]["note"] = "bent", "mine"
        harper.upsert(target, [*rows, by_hand(start, 1045, ts=rows[25]["ts"])])
        harper.upsert(
            "SyncCheckpoint",
            [
                checkpoint(name, 0, start + 2 * HOUR),
                checkpoint(name, 1, start + 3 * HOUR),
                checkpoint("another", 0, start + HOUR),
                checkpoint(name, 2, start + HOUR) | {"derivedFrom": "ledger of ours"},
            ],
        )

        looked = told("adopt", target)
        assert (looked["fits"], looked["problems"], looked["rows"]) == (True, [], 41)
        fit = {each["name"]: each for each in looked["attributes"]}
        assert (fit["ts"]["holding"], fit["ts"]["indexed"]) == ("fits", True)
        assert (fit["name"]["holding"], fit["name"]["indexed"]) == ("fits", False)
        assert {n for n, each in fit.items() if each["holding"] == "added"} == {
            "_syncedAt", "_batch", "_hash",
        }  # fmt: skip
        sample = looked["sample"]
        assert (sample["rows"], sample["equal"], sample["changed"], sample["not_in_source"]) == (
            41,
            39,
            1,
            1,
        )
        assert looked["start"] == start.isoformat()  # where the plugin began
        assert looked["plugin"] == {
            "nodes": 2,
            "ingested": 1000,
            "covered_until": (start + 2 * HOUR).isoformat(),
        }
        for told_so in ("20 rows of BigQuery are older", "declare _hash where", "name is NULL"):
            assert any(told_so in note for note in looked["notes"]), told_so
        shown = typed_well("adopt", target)
        assert "Harper's table VesselPositions: 41 rows, primary key id\n" in shown
        assert "write manage: adopt in config/tables.yaml" in shown
        early = typed("adopt", name, "--yes")
        assert (early.exit_code, "says manage: create" in early.stderr) == (2, True)

        declared = project.declare(contract | {"manage": "adopt"}, other)
        assert f"Next: bqh adopt {name} --yes" in typed_well("adopt", name)
        taken = typed_well("adopt", name, "--yes")
        lines = [line.split() for line in taken.splitlines()]
        assert [f"{start:%FT%H:%M}", "20", "19", "0", "1", "0"] in lines
        assert [f"{start + HOUR:%FT%H:%M}", "20", "20", "0", "0", "1"] in lines
        assert taken.endswith(f"{name} is adopted; no row was moved. Next: bqh sync {name}\n")
        assert changes(proxy, target) == []
        with open_ledger(declared.ledger.url) as ledger:
            known = ledger.find_route(name)
            assert known
            assert ledger.start_of(name) == start
            [note] = ledger.audit(known, kind="adopt")
            assert (note.outcome, note.detail["equal"]) == ("adopted", 39)
            assert (note.detail["changed"], note.detail["phantom"]) == (1, 1)

        until = ("--to", f"{start + 3 * HOUR:%FT%H:%M}")
        typed_well("sync", name, *until)
        assert set(changes(proxy, target)) == {"create_attribute", "upsert", "delete"}
        [added] = proxy.seen(operation="create_attribute", table=target)
        assert b'"attribute":"_hash"' in added.body
        [deleted] = proxy.seen(operation="delete", table=target)
        assert b"[1045]" in deleted.body
        stored = {row["id"]: row for row in harper.search_by_value(target, "ts", "*")}
        assert [stored[n]["name"] for n in sorted(stored)] == [f"ship {n}" for n in range(60)]
        assert stored[7]["note"] == "mine"
        with open_ledger(declared.ledger.url) as ledger:
            assert {batch.mode for batch in ledger.history(known)} == {Mode.RECONCILE}
        assert "in 6 cells (6 proved by stored hash" in typed_well("verify", name, *until)

        typed_well("sync", other["id"], *until)
        assert changes(proxy, other["targetTable"])[0] == "create_table"


@pytest.mark.promise("A14")
def test_a_table_that_does_not_fit_is_left_alone_with_the_reasons(
    project: TemporaryProject,
    proxy: FaultProxy,
    tables: SmallTables,
    component_harper: StackAddresses,
) -> None:
    start = datetime.fromisoformat("2026-01-05T07:00:00Z")
    sources = [tables.make_from(ships(start)) for _ in range(3)]
    wrong = table(sources[0], start, targetTable="Mismatched", manage="adopt", key=["number"])
    dated = table(sources[1], start, targetTable="Ingested", manage="adopt")
    absent = table(sources[2], start, manage="adopt")
    project.declare(wrong, dated, absent)

    looked = told("adopt", wrong["id"], "--yes", code=3)
    assert looked["adopted"] is False
    assert looked["problems"] == [
        "its primary key is key, and the rows' is id",
        "number is Int there, and the rows hold Long",
        "ts is Date there, and the rows hold String",
    ]
    for _ in range(2):  # before Harper can search by the timestamp, and after
        shown = typed_well("adopt", dated["id"], code=3)
        assert "problem: rows have a timestamp such as 2026-01-05T07:00:00.123Z by which" in shown
        assert f"{dated['id']} does not fit; nothing was changed" in shown
        with HarperClient(connection_to(component_harper)) as harper:
            harper.create_attribute("Ingested", "ts")
    assert "there is nothing to adopt" in typed_well("adopt", absent["id"], code=3)

    until = ("--to", f"{start + HOUR:%FT%H:%M}")
    for contract, why in (
        (wrong, "number is Int there, and the rows hold Long"),
        (absent, "says manage: adopt, so it is not created"),
    ):
        refused = typed("sync", contract["id"], *until)
        assert refused.exit_code == 1, refused.output
        assert why in refused.stderr
        assert f"bqh adopt {contract['targetTable']}" in refused.stderr
        assert changes(proxy, contract["targetTable"]) == []


def test_a_contract_that_does_not_say_adopt_is_refused_before_a_ledger_is_made(
    serverless: TemporaryProject,
) -> None:
    declared = table(TableRef("p", "shop", "orders"), hours_ago(4))
    url = serverless.declare(declared).ledger.url.get_secret_value()
    ledger = Path(url.removeprefix("sqlite:///"))
    refused = typed("adopt", declared["id"], "--yes")
    assert (refused.exit_code, "says manage: create" in refused.stderr) == (2, True)
    assert ledger.parent.is_dir()
    assert not ledger.exists()
