"""A day of positions: each row in each column, each cell in each count, proved and mended."""

import io
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.maritime.itinerary import build_itineraries
from bq_harper_assets.maritime.reports import DAY, Reports, Schedule, microseconds
from bq_harper_assets.maritime.tables import POSITIONS
from bq_harper_assets.maritime.warehouse import parquet_bytes
from bq_harper_assets.stores.bigquery.dataset import Dataset
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.slicing import id_hashes, slice_of
from bq_harper_assets.sync.cells.window import Window, windows_between
from bq_harper_assets.sync.identity.row_id import identify
from bq_harper_assets.validation.verdict import DifferenceKind, ProofStatus
from bq_harper_assets_tests.stores.harper_clients import admin
from bq_harper_assets_tests.stores.small_tables import DATASET, SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.side_by_side import plan_of

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
ROWS, SLICES = 60_000, 4
START, END = utc(2026, 1, 5), utc(2026, 1, 6)
TEXT = "%Y-%m-%dT%H:%M:%SZ"  # Arrow's %S has the fraction too


@pytest.mark.promise("A9", "B4", "H1", "J1", "J2", "M13")
def test_60_000_positions_equal_their_source_and_three_planted_faults_are_found_and_mended(
    sync: Sync, tables: SmallTables, bigquery_connection: BigQueryConnection
) -> None:
    schedule = Schedule(seed=7, vessels=500, origin=microseconds(START), span=DAY, rows=ROWS)
    source = Reports(build_itineraries(7, 500), schedule).rows(np.arange(ROWS))
    dataset = Dataset(bigquery_connection, DATASET)
    dataset.make(POSITIONS)
    dataset.append_parquet(POSITIONS.name, io.BytesIO(parquet_bytes(source)))
    table = TableRef(bigquery_connection.project, DATASET, POSITIONS.name)
    contract = sync.contract(table, timestamp_column="timestamp", slices=SLICES)
    cells = sync.cells(contract, START, END)

    report = sync.run(contract, cells)

    counts: dict[str, Counter[str]] = {name: Counter() for name in ("Harper", "source")}
    first: list[pa.Table] = []
    plan = RowPlan.of(plan_of(tables, contract))
    for window in windows_between(START, END, contract.window):
        [expected] = _of(source, window).combine_chunks().to_batches()
        identity = identify(expected, plan)
        stored = _stored(sync, contract, identity.ids.to_pylist())
        first.append(stored)
        for name in expected.schema.names:
            wanted = _as_text(expected.column(name))
            # JSON has one kind of number: a column of whole ones does not say that it is FLOAT64.
            assert stored[name].combine_chunks().cast(wanted.type).equals(wanted), name
        found = id_hashes(stored["id"].combine_chunks(), keyless=True)
        for name, hashes in (("Harper", found), ("source", identity.id_hashes)):
            parts = slice_of(hashes, SLICES).tolist()
            counts[name].update(f"{window.key}|s{part:02}" for part in parts)
    known = sync.stores.ledger.find_route(contract.id)
    assert known is not None
    committed = sync.stores.ledger.cells(known, START, END)
    in_ledger = {str(cell.cell): cell.commit.rows for cell in committed if cell.commit}
    in_report = {cell.cell.key: cell.result.written for cell in report.cells}
    assert counts["Harper"] == counts["source"] == in_ledger == in_report
    assert (len(in_ledger), sum(in_ledger.values())) == (24 * SLICES, ROWS)
    assert _count(sync, contract) == ROWS

    again = sync.run(contract, cells)

    assert (again.requests, again.rows) == (0, 0)
    _plant_and_mend(sync, contract, cells, [window["id"][7].as_py() for window in first[3:6]])
    for before in first:
        assert _stored(sync, contract, before["id"].to_pylist()).equals(before)
    assert _count(sync, contract) == ROWS


def _plant_and_mend(
    sync: Sync, contract: TableContract, cells: Sequence[Cell], ids: list[str]
) -> None:
    """One missing, one changed and one phantom row: found, named and mended, and nothing else."""
    prover = sync.prover(contract)
    missing, changed, twin = ids
    target = contract.target.table
    [row] = sync.harper.search_by_id(target, [twin])
    sync.harper.delete(target, [missing])
    sync.harper.upsert(target, [{"id": changed, "speed_knots": -1, "_hash": "0" * 13}])
    sync.harper.upsert(target, [{**row, "id": f"{twin}-7"}])
    wrong = [proof for proof in prover.prove(cells) if proof.status is not ProofStatus.PROVED]
    found = [difference for proof in wrong for difference in proof.differences]
    assert [(each.kind, each.id) for each in found] == [
        (DifferenceKind.MISSING, missing),
        (DifferenceKind.CHANGED, changed),
        (DifferenceKind.PHANTOM, f"{twin}-7"),
    ]
    assert list(found[1].columns) == ["speed_knots"]
    assert sum(proof.missing + proof.changed + proof.phantom for proof in wrong) == 3
    mended = sync.run(contract, [proof.cell for proof in wrong])
    assert (mended.rows, sum(cell.result.deleted for cell in mended.cells)) == (2, 1)
    assert {proof.status for proof in prover.prove(cells)} == {ProofStatus.PROVED}


def _of(source: pa.Table, window: Window) -> pa.Table:
    time = source["timestamp"]
    bounds = [pa.scalar(moment, time.type) for moment in (window.start, window.end)]
    within = pc.and_(pc.greater_equal(time, bounds[0]), pc.less(time, bounds[1]))
    return source.filter(within).sort_by("timestamp")


def _stored(sync: Sync, contract: TableContract, ids: list[str]) -> pa.Table:
    """These rows in Harper, without what a second run may change."""
    rows = sync.harper.search_by_id(contract.target.table, ids)
    return pa.Table.from_pylist(rows).drop(["_syncedAt", "_batch"])


def _count(sync: Sync, contract: TableContract) -> int:
    """All rows in Harper, so that none is there beside those that were looked up."""
    told = admin(
        sync.stores.harper,
        "describe_table",
        database="data",
        table=contract.target.table,
        exact_count=True,
    ).json()
    return int(told["record_count"])


def _as_text(array: pa.Array) -> pa.Array:
    return pc.strftime(array, TEXT) if pa.types.is_timestamp(array.type) else array
