"""`bqh leases`: who has which right, as the ledger has it."""

from datetime import timedelta
from pathlib import Path

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets_tests.cli.typed import told, typed_well
from bq_harper_assets_tests.temporary_project import TemporaryProject, hours_ago, table

MINUTE = timedelta(minutes=1)
BIGQUERY = BigQueryConnection(project="p")


@pytest.mark.promise("A12")
def test_claims_and_leases_are_told_with_their_owners_whether_live_expired_or_free(
    tmp_path: Path, project_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BQH_HOME", str(tmp_path / "project"))
    temporary = TemporaryProject.at(tmp_path / "project", project_root, None)
    one = table(TableRef("p", "d", "t"), hours_ago(1), slices=3)
    project = temporary.declare(one, projectId="p")
    with open_ledger(project.ledger.url) as ledger:
        known = ledger.register_route(table_facts(project.tables[0], BIGQUERY.project))
        ledger.claim("schema_check", "host-1", 10 * MINUTE)
        ledger.acquire(known, [0], "run-a", MINUTE)
        ledger.acquire(known, [1], "run-b", -MINUTE)
        ledger.release(ledger.acquire(known, [2], "run-c", MINUTE))

    rights = {right["what"]: right for right in told("leases")}

    assert rights["schema_check"]["owner"] == "host-1"
    assert rights["schema_check"]["until"] > rights["schema_check"]["since"]
    slices = [rights[f"{known.name} slice {number}"] for number in range(3)]
    assert [(each["owner"], each["is_live"]) for each in slices] == [
        ("run-a", True),
        ("run-b", False),
        (None, False),
    ]
    lines = typed_well("leases").splitlines()
    assert lines[0].split() == ["what", "owner", "epoch", "since", "until"]
    assert "run-b (expired)" in lines[3]
    assert lines[4].split()[-2:] == ["free", "1"]
