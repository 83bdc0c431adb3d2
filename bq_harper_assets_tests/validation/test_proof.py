"""The proof of whole cells: exactly what is wrong, row by row, and no false alarm."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.errors import TurnFailed
from bq_harper_assets.sync.plan import recomputed_fingerprints
from bq_harper_assets.validation.proof.cell_proof import CellProof
from bq_harper_assets.validation.proof.prover import Prover
from bq_harper_assets.validation.verdict import DifferenceKind, ProofStatus, Severity
from bq_harper_assets_tests.fault_proxy import Answer, Delay, FaultProxy, Seen
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
    prover = Prover(sync.stores, table.contract, sync.spark, sync.retry)
    cells = sync.cells(table.contract, DAY, THREE)
    return {proof.cell.key: proof for proof in prover.prove(cells, **settings)}


def statuses(proofs: dict[str, CellProof]) -> set[ProofStatus]:
    return {proof.status for proof in proofs.values()}


@pytest.mark.promise("M13")
@pytest.mark.parametrize("declared", [{}, KEYED], ids=["keyless", "keyed"])
def test_one_missing_one_changed_and_one_phantom_row_are_named_and_repaired(
    sync: Sync, tables: SmallTables, declared: dict[str, Any]
) -> None:
    table = made(sync, tables, **declared)
    assert statuses(prove(table)) == {ProofStatus.PROVED}
    rows = {row["number"]: row for row in sync.rows(table.contract)}
    target = table.contract.target_table
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


@pytest.mark.promise("M13")
def test_a_thousand_clean_cells_raise_no_alarm(sync: Sync, tables: SmallTables) -> None:
    source = tables.make_from(ROWS.format(last=250 * 900 - 1, step=180))
    contract = sync.contract(source, window="15m", slices=4)
    cells = sync.cells(contract, DAY, DAY + 250 * contract.window)
    sync.run(contract, cells)
    proofs = Prover(sync.stores, contract, sync.spark, sync.retry).prove(cells)
    assert (len(proofs), {proof.status for proof in proofs}) == (1000, {ProofStatus.PROVED})
    assert sum(proof.rows for proof in proofs) == 1250


def test_a_value_bent_under_its_old_hash_is_seen_by_the_deep_form_alone(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, **KEYED)
    sync.harper.upsert(table.contract.target_table, [{"id": 60, "name": "bent"}])
    quick = prove(table)
    assert statuses(quick) == {ProofStatus.PROVED}
    assert {proof.words for proof in quick.values()} == {"proved by stored hash"}
    assert all("--deep" in proof.message for proof in quick.values())
    deep = prove(table, deep=True)
    assert {proof.words for proof in deep.values()} == {"proved", "differs"}
    wrong = [proof for proof in deep.values() if proof.status is ProofStatus.DIFFERS]
    assert [proof.changed for proof in wrong] == [1]
    assert wrong[0].differences[0].columns == {"name": ("name 60", "bent")}


@pytest.mark.promise("M13")
def test_a_cell_that_is_synced_while_it_is_proved_is_called_moving_and_not_different(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, **KEYED)
    table.change("UPDATE T SET name = 'later' WHERE number = 60")
    read, go_on = threading.Event(), threading.Event()

    def is_read_back(seen: Seen) -> bool:
        read.set()
        return True

    with FaultProxy(sync.stores.harper.url) as proxy, ThreadPoolExecutor(1) as pool:
        target = table.contract.target_table
        proxy.on(
            Delay(go_on),
            operation="search_by_conditions",
            table=target,
            matching=is_read_back,
            times=9,
        )
        spoilt = sync.stores.harper.model_copy(update={"url": proxy.url})
        slow = replace(table, sync=replace(sync, stores=replace(sync.stores, harper=spoilt)))
        proving = pool.submit(prove, slow)
        try:
            assert read.wait(60)
            table.run(DAY, ONE)  # it commits after the proof's first look and before its last
        finally:
            go_on.set()
        proofs = proving.result(60)
    for key, proof in proofs.items():
        of_the_first_hour = key.startswith("2026-01-05T00")
        expected = ProofStatus.MOVING if of_the_first_hour else ProofStatus.PROVED
        assert proof.status is expected, key
    assert statuses(prove(table)) == {ProofStatus.PROVED}


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
    sync.harper.upsert(table.contract.target_table, [{"id": 7200, "_hash": "0" * 13}])
    monkeypatch.setattr(recomputed_fingerprints, "TIME_TRAVEL", timedelta(0))
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
    sync.harper.upsert(contract.target_table, [{"id": 7200, "name": "bent", "_hash": "0" * 13}])
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
    known = sync.stores.ledger.find_table(table.contract.id)
    assert known is not None
    quarantined = sync.stores.ledger.quarantined(known)
    sync.stores.ledger.drop_quarantined(known, quarantined[0].cell, None, "a test")
    proofs = prove(table)
    assert [proof.missing for proof in proofs.values() if proof.missing] == [1]


def test_a_cell_that_was_never_synced_or_is_being_moved_is_not_called_proved(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables)
    other = Table(
        sync=sync, tables=tables, source=table.source, contract=sync.contract(table.source)
    )
    assert statuses(prove(other)) == {ProofStatus.NOT_SYNCED}
    assert all(not proof.verdict.passed for proof in prove(other).values())


def test_a_cell_that_is_marked_waits_for_its_sync_and_is_not_called_different(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, **KEYED)
    table.change("UPDATE T SET ts = TIMESTAMP_ADD(ts, INTERVAL 1 HOUR) WHERE number = 60")
    # Only the window to which the row has moved: the one that it has left is marked.
    sync.run(table.contract, sync.cells(table.contract, ONE, TWO))
    proofs = prove(table)
    [waiting] = [proof for proof in proofs.values() if proof.status is not ProofStatus.PROVED]
    assert waiting.status is ProofStatus.MOVING
    assert (waiting.verdict.passed, waiting.verdict.severity) == (False, Severity.WARN)
    assert "waits to be synced again" in waiting.message
    assert f"bqh sync {table.contract.id} --from" in waiting.message
    sync.run(table.contract, [waiting.cell])
    assert statuses(prove(table)) == {ProofStatus.PROVED}


def test_a_cell_whose_last_sync_failed_half_way_waits_and_is_not_called_different(
    sync: Sync, tables: SmallTables, harper_connection: HarperConnection
) -> None:
    table = made(sync, tables, slices=1, **KEYED)
    table.change("UPDATE T SET name = 'changed' WHERE number < 3600")
    cells = sync.cells(table.contract, DAY, ONE)
    with FaultProxy(harper_connection.url) as proxy:
        proxy.on(Answer(403), operation="upsert", table=table.contract.target_table, times=99)
        harper = harper_connection.model_copy(update={"url": proxy.url})
        spoilt = replace(sync, stores=replace(sync.stores, harper=harper))
        with pytest.raises(TurnFailed):
            spoilt.run(table.contract, cells)
    # As if some of its rows had been written before.
    sync.harper.upsert(table.contract.target_table, [{"id": 60, "name": "changed", "_hash": "0"}])
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
