"""What a validation leaves in the ledger and in the rows of SyncAudit."""

import json
from dataclasses import replace
from pathlib import Path

from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.stores.harper.mirror.tables import AUDITS
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.validation.audit import audit_rows, record_validation
from bq_harper_assets.validation.verdict import ProgressStatus, Severity, SpotStatus, Verdict
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.stores.memory_harper import away, client_of, harper_with
from bq_harper_assets_tests.validation.committed import DAY, MINUTE, at, registered, ships

FINE = Verdict(
    check="progress",
    status=ProgressStatus.HEALTHY,
    passed=True,
    severity=Severity.WARN,
    message="nothing is due",
)
WRONG = replace(
    FINE, check="spot", status=SpotStatus.ISSUES_FOUND, passed=False, message="1 of 20 rows"
)
CELL = Cell(Window(DAY, DAY + 5 * MINUTE), 1)


def test_a_validation_has_a_row_as_a_whole_and_one_for_each_check_that_failed() -> None:
    whole, failed = audit_rows("ships", [FINE, WRONG], DAY, CELL)
    number = whole["id"].split("|")[2]
    assert whole == {
        "id": f"ships|{at(0)}|{number}|all",
        "timestamp": at(0),
        "nodeId": "ships-s01",
        "tableId": "ships",
        "partition": CELL.key,
        "check": "all",
        "status": "issues_detected",
        "message": "progress: healthy; spot: issues_found",
        "checkResults": whole["checkResults"],
    }
    assert json.loads(whole["checkResults"]) == {
        "ships": {"progress": FINE.as_json(), "spot": WRONG.as_json()}
    }
    assert failed["id"] == f"ships|{at(0)}|{number}|spot"
    assert (failed["check"], failed["status"], failed["message"]) == (
        "spot",
        "failed",
        "1 of 20 rows",
    )
    assert json.loads(failed["checkResults"]) == {"ships": {"spot": WRONG.as_json()}}


def test_a_validation_of_the_table_is_of_no_partition_and_two_have_different_ids() -> None:
    [first] = audit_rows("ships", [FINE], DAY)
    [second] = audit_rows("ships", [FINE], DAY)
    assert (first["nodeId"], first["partition"], first["status"]) == ("ships", None, "healthy")
    assert first["id"] != second["id"]


def test_the_ledger_has_the_verdicts_also_if_harper_does_not_take_them(tmp_path: Path) -> None:
    known = ships()
    harper = harper_with({AUDITS.name: []})
    with (
        open_ledger(empty_ledger(tmp_path / "ledger.db")) as ledger,
        client_of(harper) as client,
    ):
        route = registered(ledger, known)
        assert record_validation(ledger, client, route, [FINE, WRONG]) is None
        assert {each["check"] for each in harper.rows(AUDITS.name)} == {"all", "spot"}
        harper.refuses = away
        warning = record_validation(ledger, client, route, [FINE], cell=CELL)
        newest, before = ledger.audit(route, kind="validation")
    assert warning
    assert warning.startswith(f"the validation of {CELL.key} could not be copied to Harper's table")
    assert warning.endswith("The ledger has it")
    assert (newest.subject, newest.outcome) == (CELL.key, "healthy")
    assert (before.subject, before.outcome) == ("orders", "issues_detected")
    assert before.detail == {"checks": {"progress": FINE.as_json(), "spot": WRONG.as_json()}}
