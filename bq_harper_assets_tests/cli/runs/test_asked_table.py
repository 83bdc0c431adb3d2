"""What a command is told of the table that it asks about."""

import click
import pytest

from bq_harper_assets.cli.runs.asked_table import (
    AskedTable,
    asked_table,
    contract_named,
    open_project,
)
from bq_harper_assets.cli.runs.reachability import NotReachable
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.errors import NoSuchVersion
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets_tests.cli.conftest import ByHand
from bq_harper_assets_tests.schema.versions import of, seen
from bq_harper_assets_tests.stores.bigquery.by_hand import described
from bq_harper_assets_tests.temporary_project import TemporaryProject, hours_ago, table


def test_a_version_that_is_named_of_a_table_never_synced_is_refused_and_not_planned(
    serverless: TemporaryProject,
) -> None:
    project = serverless.declare(table(TableRef("p", "d", "orders"), hours_ago(3)))
    with open_ledger(project.ledger.url) as ledger:
        asked = AskedTable(project, project.tables[0], ledger)
        with pytest.raises(NoSuchVersion, match="its first sync records one"):
            asked.version(3)


FIELDS = [{"name": "ts", "type": "TIMESTAMP"}, {"name": "number", "type": "INTEGER"}]


def declared(name: str, target: str) -> dict[str, object]:
    source = TableRef("p", "shop", name)
    return table(source, hours_ago(3), id=name, targetTable=target, key=["number"])


def test_a_table_is_found_by_its_name_or_target_in_any_case_and_a_near_one_is_offered(
    serverless: TemporaryProject,
) -> None:
    project = serverless.declare(declared("orders", "Sales"), declared("ships", "Fleet"))
    for name in ("orders", "ORDERS", "sales", "Sales"):
        assert contract_named(project, name).id == "orders"
    assert contract_named(project, "fleet").id == "ships"
    with pytest.raises(click.UsageError, match="no table 'ordres'; did you mean orders"):
        contract_named(project, "ordres")
    with pytest.raises(click.UsageError, match="no table 'x'; there are: orders, ships"):
        contract_named(project, "x")


def test_the_profile_is_the_one_that_is_named(
    serverless: TemporaryProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    serverless.declare(declared("orders", "Sales"))
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    assert (open_project(None).profile_name, open_project("").profile_name) == ("local", "local")
    (serverless.root / "config" / "profiles" / "mine.yaml").write_text("{}", encoding="utf-8")
    assert open_project("mine").profile_name == "mine"


def test_versions_are_those_of_the_ledger_or_the_one_that_a_look_would_record(
    by_hand: ByHand,
) -> None:
    by_hand.project.declare(declared("orders", "Sales"))
    by_hand.bigquery.tables = described("shop", "orders", schema={"fields": FIELDS})
    with asked_table("sales", None) as asked:
        assert asked.history == ()
        recorded, first = asked.version(None)
        assert recorded is None
        assert first.live_names == {"ts", "number"}
        facts = table_facts(asked.contract, asked.project.bigquery.project)
        known = asked.ledger.register_route(facts)
        one = seen(None, of("speed", Kind.STRING))
        two = seen(one, of("speed", Kind.STRING), of("name", Kind.STRING))
        asked.ledger.record_schema(known, one.body(), 0)
        asked.ledger.record_schema(known, two.body(), 1)
        assert [each.version for each in asked.history] == [1, 2]
        for number, version in ((None, two), (1, one), (2, two)):
            recorded, found = asked.version(number)
            assert recorded is not None
            assert (recorded.version, found) == (number or 2, version)
        assert asked.recorded(1)[1].version == 1


def test_only_the_server_that_is_needed_has_to_listen(by_hand: ByHand, nowhere: str) -> None:
    by_hand.project.declare(declared("orders", "Sales"))
    with asked_table("orders", None) as asked:
        with asked.queries("read") as queries:
            queries.run("SELECT 1", doing="x")
        [sent] = by_hand.bigquery.asked
        assert sent.job["configuration"]["labels"] == {"bqh": "read"}
        with asked.harper() as harper:
            assert harper is not None


def test_a_server_that_does_not_listen_is_told(serverless: TemporaryProject) -> None:
    serverless.declare(declared("orders", "Sales"))
    with asked_table("orders", None) as asked:
        with pytest.raises(NotReachable, match=r"^BigQuery does not answer"), asked.queries():
            pass
        with pytest.raises(NotReachable, match=r"^Harper does not answer"), asked.harper():
            pass
