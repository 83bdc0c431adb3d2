"""What would stop every run of a table, by answers that are written here."""

import pytest

from bq_harper_assets.cli.runs.readiness import (
    Readiness,
    SourceMissing,
    require_ready,
    require_source,
)
from bq_harper_assets.contract.project import Project, load_project
from bq_harper_assets.contract.settings.addresses import read_addresses, write_addresses
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.ledger.errors import TableChanged
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import CellKey
from bq_harper_assets.schema.errors import SchemaMismatch
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.errors import OutOfStep
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets_tests.cli.conftest import ByHand
from bq_harper_assets_tests.fault_proxy import Answer
from bq_harper_assets_tests.ledger.sample import TTL, copy, result
from bq_harper_assets_tests.schema.versions import of, seen
from bq_harper_assets_tests.stores.bigquery.by_hand import described
from bq_harper_assets_tests.temporary_project import HOUR, hours_ago, table

ORDERS = TableRef("p", "shop", "orders")
TS, NUMBER = {"name": "ts", "type": "TIMESTAMP"}, {"name": "number", "type": "INTEGER"}
START = hours_ago(3)


def declare(by_hand: ByHand, **declared: object) -> Project:
    known = {"id": "orders", "targetTable": "Orders", "key": ["number"]}
    return by_hand.project.declare(table(ORDERS, START, **{**known, **declared}))


def register(project: Project) -> None:
    with open_ledger(project.ledger.url) as ledger:
        ledger.register_route(table_facts(project.tables[0], project.bigquery.project))


@pytest.mark.parametrize("is_known", [True, False])
def test_a_harper_that_does_not_answer_is_left_to_the_run(by_hand: ByHand, is_known: bool) -> None:
    by_hand.harper.on(Answer(503, {"error": "busy"}), times=9)
    project = declare(by_hand)
    if is_known:
        register(project)
    found = require_ready(project, project.tables[0])
    assert found is (
        Readiness.HARPER_NOT_ASKED if is_known else Readiness.NEVER_SYNCED_HARPER_NOT_ASKED
    )
    assert len(by_hand.harper.seen()) == 1


@pytest.mark.parametrize("is_known", [True, False])
def test_a_harper_without_the_table_is_in_step_with_a_ledger_that_synced_nothing(
    by_hand: ByHand, is_known: bool
) -> None:
    by_hand.harper.on(Answer(404, {"error": "Table 'data.Orders' does not exist"}), times=9)
    project = declare(by_hand)
    if is_known:
        register(project)
    found = require_ready(project, project.tables[0])
    assert found is (Readiness.IN_STEP if is_known else Readiness.NEVER_SYNCED)


def test_a_copy_of_another_ledger_is_told_for_a_table_never_synced_too(by_hand: ByHand) -> None:
    copy = {"id": "Orders|s01", "ledger": "another", "epoch": 1, "batch": 1, "deadline": 0}
    by_hand.harper.on(Answer(200, f"[{copy}]".replace("'", '"')), operation="search_by_id", times=9)
    by_hand.harper.on(Answer(404, {"error": "Table 'data.Orders' does not exist"}), times=9)
    project = declare(by_hand)
    with pytest.raises(OutOfStep, match="is kept by the ledger another"):
        require_ready(project, project.tables[0])


def test_another_declaration_is_refused_before_harper_is_asked(by_hand: ByHand) -> None:
    project = declare(by_hand)
    register(project)
    with open_ledger(project.ledger.url) as ledger:
        known = ledger.find_route("orders")
        assert known is not None
        ledger.record_schema(known, {"columns": []}, 0)
        leases = ledger.acquire(known, [0], "run-1", TTL)
        cell = CellKey.of_window(START, START + HOUR, 0)
        [batch] = ledger.plan(leases, ledger.now(), 1, [copy(cell)], "run-1")
        ledger.commit_cells(leases, [(batch, result(1))])
    project = declare(by_hand, key=None)
    with pytest.raises(TableChanged, match="key"):
        require_ready(project, project.tables[0])
    assert by_hand.harper.seen() == []


def test_a_source_that_bigquery_does_not_have_is_named_with_its_location(by_hand: ByHand) -> None:
    project = declare(by_hand)
    with pytest.raises(SourceMissing, match=r"BigQuery has no table by-hand\.shop\.orders, which"):
        require_source(project, project.tables[0])
    with open_ledger(project.ledger.url) as ledger:
        assert ledger.find_route("orders") is None


def test_a_column_that_is_missing_is_told_and_what_only_the_run_can_judge_is_not(
    by_hand: ByHand,
) -> None:
    project = declare(by_hand)
    by_hand.bigquery.tables = described("shop", "orders", schema={"fields": [TS, NUMBER]})
    require_source(project, project.tables[0])
    by_hand.bigquery.tables = described("shop", "orders", schema={"fields": [NUMBER]})
    with pytest.raises(SchemaMismatch, match="no column ts"):
        require_source(project, project.tables[0])
    register(project)
    with open_ledger(project.ledger.url) as ledger:
        known = ledger.find_route("orders")
        assert known is not None
        version = seen(None, of("ts", Kind.TIMESTAMP), of("speed", Kind.STRING))
        ledger.record_schema(known, version.body(), 0)
    changed = [TS, {"name": "number", "type": "STRING"}]
    by_hand.bigquery.tables = described("shop", "orders", schema={"fields": changed})
    require_source(project, project.tables[0])  # another type of the key: SchemaRefused


def test_a_bigquery_that_is_away_is_asked_once_and_left_to_the_run(by_hand: ByHand) -> None:
    by_hand.harper.on(Answer(503, {"error": {"message": "away"}}), times=9)
    declare(by_hand)
    folder = local_folder(by_hand.project.root)
    known = read_addresses(folder)
    assert known is not None
    write_addresses(folder, known.model_copy(update={"bigquery_url": by_hand.harper.url}))
    project = load_project(by_hand.project.root)
    require_source(project, project.tables[0])
    assert len(by_hand.harper.seen()) == 1
