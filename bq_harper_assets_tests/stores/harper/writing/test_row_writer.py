"""Rows are written in the order of ids, and each is counted in its own cell."""

import time
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
from pydantic import SecretStr

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.stores.harper.writing.row_writer import HarperRowWriter
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.grid import Grid, Part
from bq_harper_assets.sync.cells.slicing import id_hashes
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets.sync.identity.row_id import identify
from bq_harper_assets.sync.protocols import LeaseTerms, WriteOrder
from bq_harper_assets.sync.source.cell_rows import CellRows
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.harper_columns import native_column

DAY = datetime(2026, 1, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)
COLUMNS = (Column(name="number", kind=Kind.INT64), Column(name="at", kind=Kind.TIMESTAMP))
PLAN = RowPlan(columns=tuple(map(native_column, COLUMNS)), timestamp="at", key=("number",))
TERMS = LeaseTerms(
    target="Ships",
    epochs={0: 1},
    deadline=time.time() + 3600,
    effect_within_s=1.0,
    max_clock_skew_s=1.0,
)
ORDER = WriteOrder(lease=TERMS, synced_at=DAY, most_rows=1, most_bytes=10_000)


def test_a_row_that_harper_refuses_is_told_of_its_own_cell(nowhere: str) -> None:
    hours = list(windows_between(DAY, DAY + 3 * HOUR, HOUR))
    cells = [Cell(window, 0) for window in hours]
    grid = Grid.of({cell: Part.whole(cell, 1 + at) for at, cell in enumerate(cells)}, slices=1)
    times = pa.array([window.start for window in hours], pa.timestamp("us", "UTC"))
    batch = pa.record_batch({"number": [30, 10, 20], "at": times})
    rows = CellRows(batch, identify(batch, PLAN), np.arange(3))
    with FaultProxy(nowhere) as proxy:
        refusal = Answer(400, {"error": "not so"})
        written = Answer(200, b'{"message":"upserted 1 of 1 records"}')
        proxy.on(refusal, operation="upsert", matching=lambda seen: b'"number":30' in seen.body)
        proxy.on(written, operation="upsert", times=2)
        login = HarperConnection(url=proxy.url, user="nobody", password=SecretStr("none"))
        writer = HarperRowWriter(login, "Ships", RetryPolicy(max_retries=0), ORDER, PLAN, grid)
        places, ids = writer.write(rows)
        writer.close()
        sent = [seen.body for seen in proxy.seen(operation="upsert")]
    numbers = (10, 20, 30)
    assert tuple(n for body in sent for n in numbers if b'"number":%d' % n in body) == numbers
    assert places.tolist() == [1, 2, 0]
    assert ids.tolist() == id_hashes(pa.array(numbers), keyless=False).tolist()
    assert writer.written.tolist() == [0, 1, 1]
    assert [(row.place, row.row_id) for row in writer.refusals] == [(0, "30")]
