"""The rows that differ are named, and those in quarantine are accounted for."""

from typing import Any

import pytest

from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.validation.verdict import DifferenceKind, ProofStatus
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import (
    KEYED,
    Table,
    made,
)
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.validation.proof.test_prover import prove, statuses

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


@pytest.mark.promise("M13")
@pytest.mark.parametrize("declared", [{}, KEYED], ids=["keyless", "keyed"])
def test_one_missing_one_changed_and_one_phantom_row_are_named_and_repaired(
    sync: Sync, tables: SmallTables, declared: dict[str, Any]
) -> None:
    table = made(sync, tables, **declared)
    assert statuses(prove(table)) == {ProofStatus.PROVED}
    rows = {row["number"]: row for row in sync.rows(table.contract)}
    target = table.contract.target.table
    phantom = {**rows[60], "id": 61 if declared else f"{rows[60]['id']}-9"}
    sync.harper.delete(target, [rows[3600]["id"]])
    sync.harper.upsert(target, [{**rows[7200], "name": "bent", "_hash": "0" * 13}])
    sync.harper.upsert(target, [phantom])
    proofs = prove(table)
    wrong = {key: proof for key, proof in proofs.items() if proof.status is ProofStatus.DIFFERS}
    found = {d.kind: d for proof in wrong.values() for d in proof.differences}
    assert found[DifferenceKind.MISSING].id == rows[3600]["id"]
    assert found[DifferenceKind.PHANTOM].id == phantom["id"]
    assert found[DifferenceKind.CHANGED].id == rows[7200]["id"]
    assert found[DifferenceKind.CHANGED].columns == {"name": ("name 7200", "bent")}
    assert sum(p.missing + p.changed + p.phantom for p in proofs.values()) == 3
    assert len(wrong) == 3
    assert statuses({k: p for k, p in proofs.items() if k not in wrong}) == {ProofStatus.PROVED}
    cells = [Cell.parse(key, table.contract.window) for key in wrong]
    report = sync.run(table.contract, cells)
    assert sum(cell.result.written for cell in report.cells) == 2
    assert statuses(prove(table)) == {ProofStatus.PROVED}


def test_rows_that_cannot_be_stored_are_explained_by_quarantine_and_not_without_it(
    sync: Sync, tables: SmallTables
) -> None:
    source = tables.make_from(
        "SELECT n AS number, TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL n MINUTE) AS ts,"
        " IF(n = 7, CAST('NaN' AS FLOAT64), 1.5) AS ratio FROM UNNEST(GENERATE_ARRAY(0, 9)) AS n"
    )
    table = Table(sync=sync, tables=tables, source=source, contract=sync.contract(source, **KEYED))
    table.run()
    assert statuses(prove(table)) == {ProofStatus.PROVED}
    assert sum(proof.quarantined for proof in prove(table).values()) == 1
    known = sync.stores.ledger.find_route(table.contract.id)
    assert known is not None
    quarantined = sync.stores.ledger.quarantined(known)
    sync.stores.ledger.drop_quarantined(known, quarantined[0].cell, None, "a test")
    proofs = prove(table)
    assert [proof.missing for proof in proofs.values() if proof.missing] == [1]
