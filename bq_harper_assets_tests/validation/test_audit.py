"""What a validation leaves behind: in the ledger and in Harper, whose failure harms nothing."""

import json
from datetime import timedelta

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.retries.breaker import Breakers
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.mirror.tables import AUDITS
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.validation.audit import record_validation
from bq_harper_assets.validation.verdict import (
    Difference,
    DifferenceKind,
    ProgressStatus,
    Severity,
    SpotStatus,
    Verdict,
)
from bq_harper_assets_tests.stores.harper_clients import selected
from bq_harper_assets_tests.stores.small_tables import utc
from bq_harper_assets_tests.validation.conftest import MINUTE, Bench

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]
NOON = utc(2026, 1, 5, 12)
HEALTHY = Verdict(
    check="progress",
    status=ProgressStatus.HEALTHY,
    passed=True,
    severity=Severity.WARN,
    message="nothing is due",
)
FOUND = Verdict(
    check="spot",
    status=SpotStatus.ISSUES_FOUND,
    passed=False,
    severity=Severity.ERROR,
    message="1 of 20 rows",
    metadata={"seed": 7},
    rows=(Difference(DifferenceKind.MISSING, "0A1"),),
)


@pytest.mark.promise("M4")
@pytest.mark.promise("M10")
def test_a_failed_check_is_found_by_its_status_beside_the_record_of_the_whole(
    bench: Bench, harper_connection: HarperConnection
) -> None:
    contract = bench.contract(bench.source(NOON), NOON)
    table = bench.commit(contract, NOON, NOON + 5 * MINUTE)
    cell = Cell(Window(NOON, NOON + timedelta(minutes=5)), 1)
    assert record_validation(bench.ledger, bench.harper, table, [HEALTHY, FOUND], cell=cell) is None
    mine = f"tableId = '{contract.id}'"
    (failed,) = selected(
        harper_connection, f"SELECT * FROM data.{AUDITS.name} WHERE status = 'failed' AND {mine}"
    )
    assert (failed["check"], failed["nodeId"]) == ("spot", f"{contract.id}-s01")
    assert failed["partition"] == "2026-01-05T12:00|s01"
    assert json.loads(failed["checkResults"]) == {contract.id: {"spot": FOUND.as_json()}}
    (whole,) = selected(
        harper_connection,
        f"SELECT * FROM data.{AUDITS.name} WHERE status = 'issues_detected' AND {mine}",
    )
    results = {"progress": HEALTHY.as_json(), "spot": FOUND.as_json()}
    assert json.loads(whole["checkResults"]) == {contract.id: results}
    assert whole["timestamp"] == failed["timestamp"]
    (entry,) = bench.ledger.audit(table, kind="validation")
    assert (entry.subject, entry.outcome) == (cell.key, "issues_detected")
    assert entry.detail == {"checks": results}


def test_each_validation_is_kept_and_a_healthy_one_has_no_failed_row(bench: Bench) -> None:
    contract = bench.contract(bench.source(NOON), NOON)
    table = bench.commit(contract, NOON, NOON + 5 * MINUTE)
    for _ in range(2):
        record_validation(bench.ledger, bench.harper, table, [HEALTHY])
    rows = bench.harper.search_by_value(AUDITS.name, "tableId", contract.id)
    assert [(row["status"], row["nodeId"], row["partition"]) for row in rows] == [
        ("healthy", contract.id, None)
    ] * 2


@pytest.mark.promise("M4")
def test_a_harper_that_does_not_take_the_record_gives_a_warning_and_the_ledger_keeps_it(
    bench: Bench, harper_connection: HarperConnection, nowhere: str
) -> None:
    contract = bench.contract(bench.source(NOON), NOON)
    table = bench.commit(contract, NOON, NOON + 5 * MINUTE)
    stopped = harper_connection.model_copy(update={"url": nowhere})
    with HarperClient(stopped, retry=RetryPolicy(max_retries=0), breakers=Breakers()) as away:
        warning = record_validation(bench.ledger, away, table, [FOUND])
    assert warning is not None
    assert AUDITS.name in warning
    assert "The ledger has it" in warning
    assert [entry.outcome for entry in bench.ledger.audit(table, kind="validation")] == [
        "issues_detected"
    ]
