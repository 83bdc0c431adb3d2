"""The proof of whole cells: exactly what is wrong, row by row, and no false alarm."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.stores.bigquery import source
from bq_harper_assets.sync.errors import TurnFailed
from bq_harper_assets.validation.proof.cell_proof import CellProof
from bq_harper_assets.validation.verdict import ProofStatus, Severity
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import (
    DAY,
    KEYED,
    ONE,
    ROWS,
    THREE,
    TWO,
    Table,
    made,
)
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


def prove(table: Table, **settings: Any) -> dict[str, CellProof]:
    sync = table.sync
    prover = sync.prover(table.contract)
    cells = sync.cells(table.contract, DAY, THREE)
    return {proof.cell.key: proof for proof in prover.prove(cells, **settings)}


def statuses(proofs: dict[str, CellProof]) -> set[ProofStatus]:
    return {proof.status for proof in proofs.values()}


@pytest.mark.promise("M13")
def test_a_thousand_clean_cells_raise_no_alarm(sync: Sync, tables: SmallTables) -> None:
    source = tables.make_from(ROWS.format(last=250 * 900 - 1, step=180))
    contract = sync.contract(source, window="15m", slices=4)
    cells = sync.cells(contract, DAY, DAY + 250 * contract.window)
    sync.run(contract, cells)
    proofs = sync.prover(contract).prove(cells)
    assert (len(proofs), {proof.status for proof in proofs}) == (1000, {ProofStatus.PROVED})
    assert sum(proof.rows for proof in proofs) == 1250


def test_a_value_bent_under_its_old_hash_is_seen_by_the_deep_form_alone(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, **KEYED)
    sync.harper.upsert(table.contract.target.table, [{"id": 60, "name": "bent"}])
    quick = prove(table)
    assert statuses(quick) == {ProofStatus.PROVED}
    assert {proof.words for proof in quick.values()} == {"proved by stored hash"}
    assert all("--deep" in proof.message for proof in quick.values())
    deep = prove(table, deep=True)
    assert {proof.words for proof in deep.values()} == {"proved", "differs"}
    wrong = [proof for proof in deep.values() if proof.status is ProofStatus.DIFFERS]
    assert [proof.changed for proof in wrong] == [1]
    assert wrong[0].differences[0].columns == {"name": ("name 60", "bent")}


def test_a_source_that_changed_since_is_no_difference_at_the_instant_of_the_sync(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, **KEYED)
    table.change("UPDATE T SET name = 'later' WHERE number = 60")
    proofs = prove(table)
    assert statuses(proofs) == {ProofStatus.PROVED}
    changed = {key for key, proof in proofs.items() if proof.source_changed}
    assert {key.split("|")[0] for key in changed} == {"2026-01-05T00:00"}


def test_a_change_whose_past_bigquery_no_longer_keeps_warns_of_its_own_cell_alone(
    sync: Sync, tables: SmallTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(sync, tables, **KEYED)
    table.change("UPDATE T SET name = 'later' WHERE number = 60")
    sync.harper.upsert(table.contract.target.table, [{"id": 7200, "_hash": "0" * 13}])
    monkeypatch.setattr(source, "TIME_TRAVEL", timedelta(0))
    proofs = prove(table)
    [late] = [p for p in proofs.values() if p.status is ProofStatus.SOURCE_CHANGED]
    assert late.cell.window.start == DAY
    assert (late.verdict.passed, late.verdict.severity) == (False, Severity.WARN)
    assert (late.missing, late.changed, late.phantom) == (0, 1, 0)
    assert late.differences[0].columns == {"name": ("later", "name 60")}
    what = f"bqh sync {table.contract.id} --from 2026-01-05T00:00 --to 2026-01-05T01:00"
    assert "changed in BigQuery since its sync at" in late.message
    assert f"no longer keeps that instant; sync it: {what}." in late.message
    [wrong] = [p for p in proofs.values() if p.status is ProofStatus.DIFFERS]
    assert (wrong.cell.window.start, wrong.verdict.severity) == (TWO, Severity.ERROR)
    others = {key: p for key, p in proofs.items() if p not in (late, wrong)}
    assert statuses(others) == {ProofStatus.PROVED}
    table.run(DAY, ONE)
    assert statuses(prove(table)) == {ProofStatus.PROVED, ProofStatus.DIFFERS}


@pytest.mark.parametrize("kind", ["query", "view", "latest"])
def test_a_source_without_a_past_that_changed_since_its_sync_warns_and_a_fault_in_harper_does_not(
    sync: Sync, tables: SmallTables, kind: str
) -> None:
    source, view = tables.make_from(ROWS.format(last=10_799, step=60)), tables.new_name()
    tables.run(f"CREATE VIEW {view.sql} AS SELECT * FROM {source.sql}")
    declared: dict[str, Any] = {
        "query": {"custom_query": f"SELECT * FROM {source.sql}"},
        "view": {},
        "latest": {"latest": True},
    }[kind]
    contract = sync.contract(view if kind == "view" else source, **KEYED, **declared)
    table = Table(sync=sync, tables=tables, source=source, contract=contract)
    table.run()
    table.change("UPDATE T SET name = 'later' WHERE number = 60")
    sync.harper.upsert(contract.target.table, [{"id": 7200, "name": "bent", "_hash": "0" * 13}])
    proofs = prove(table)
    [late] = [p for p in proofs.values() if p.status is ProofStatus.SOURCE_CHANGED]
    assert (late.cell.window.start, late.source_changed) == (DAY, True)
    assert late.verdict.severity is Severity.WARN
    assert "by a query has no past; sync it: bqh sync" in late.message
    [wrong] = [p for p in proofs.values() if p.status is ProofStatus.DIFFERS]
    assert (wrong.cell.window.start, wrong.source_changed) == (TWO, False)
    assert wrong.verdict.severity is Severity.ERROR
    others = {key: p for key, p in proofs.items() if p not in (late, wrong)}
    assert statuses(others) == {ProofStatus.PROVED}


def test_an_error_at_one_instant_of_the_past_leaves_the_other_cells_proved(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, **KEYED)
    # The table is made anew: of the one that was there at the sync nothing is kept.
    tables.run(f"DROP TABLE {table.source.sql}")
    tables.run(f"CREATE TABLE {table.source.sql} AS {ROWS.format(last=10_799, step=60)}")
    table.run(ONE, TWO)
    table.change("UPDATE T SET name = 'later' WHERE number IN (60, 3660)")
    proofs = prove(table)
    failed = {key for key, p in proofs.items() if p.status is ProofStatus.CHECK_FAILED}
    assert failed == {"2026-01-05T00:00|s00", "2026-01-05T00:00|s01"}
    others = {key: p for key, p in proofs.items() if key not in failed}
    assert statuses(others) == {ProofStatus.PROVED}
    since = {key for key, p in others.items() if p.source_changed}
    assert since == {"2026-01-05T01:00|s00", "2026-01-05T01:00|s01"}


def test_a_cell_whose_last_sync_failed_half_way_waits_and_is_not_called_different(
    sync: Sync, tables: SmallTables, harper_connection: HarperConnection
) -> None:
    table = made(sync, tables, slices=1, **KEYED)
    table.change("UPDATE T SET name = 'changed' WHERE number < 3600")
    cells = sync.cells(table.contract, DAY, ONE)
    with FaultProxy(harper_connection.url) as proxy:
        proxy.on(Answer(403), operation="upsert", table=table.contract.target.table, times=99)
        harper = harper_connection.model_copy(update={"url": proxy.url})
        spoilt = replace(sync, stores=replace(sync.stores, harper=harper))
        with pytest.raises(TurnFailed):
            spoilt.run(table.contract, cells)
    # As if some of its rows had been written before.
    sync.harper.upsert(table.contract.target.table, [{"id": 60, "name": "changed", "_hash": "0"}])
    failed, *others = prove(table).values()
    assert {proof.status for proof in others} == {ProofStatus.PROVED}
    assert failed.status is ProofStatus.MOVING
    assert failed.verdict.severity is Severity.WARN
    assert "waits to be synced again, because its last sync failed (" in failed.message
    assert "403" in failed.message
    assert f"bqh sync {table.contract.id} --from 2026-01-05T00:00 --to" in failed.message
    sync.run(table.contract, cells)
    assert statuses(prove(table)) == {ProofStatus.PROVED}


def test_a_harper_that_is_away_is_told_and_not_taken_for_empty(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables)
    away = sync.stores.harper.model_copy(update={"url": "http://127.0.0.1:1"})
    elsewhere = replace(sync, stores=replace(sync.stores, harper=away))
    proofs = prove(replace(table, sync=elsewhere))
    assert statuses(proofs) == {ProofStatus.CHECK_FAILED}
