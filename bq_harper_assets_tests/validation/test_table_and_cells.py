"""Progress and smoke of single cells: each is told by what it holds itself."""

from datetime import datetime

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.windows import windows_between
from bq_harper_assets.validation.cell_progress import check_cells
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets.validation.table_and_cells import check_table
from bq_harper_assets.validation.verdict import ProgressStatus, Severity, SmokeStatus
from bq_harper_assets_tests.stores.small_tables import utc
from bq_harper_assets_tests.validation.conftest import MINUTE, SLICES, Bench, just_now

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]
NOON = utc(2026, 1, 5, 12)


def cells_of(start: datetime, end: datetime) -> list[Cell]:
    """Of five-minute windows."""
    windows = windows_between(start, end, 5 * MINUTE)
    return [Cell(window, part) for window in windows for part in range(SLICES)]


@pytest.mark.promise("M1", "O3")
def test_a_cell_lags_by_its_own_rows_and_not_by_those_of_others(bench: Bench) -> None:
    source = bench.source(NOON, NOON + 6 * MINUTE, NOON + 7 * MINUTE)
    contract = bench.contract(source, NOON)
    subject = bench.subject(contract)
    cells = cells_of(NOON, NOON + 15 * MINUTE)
    assert {each.status for each in check_cells(subject, cells).values()} == {
        ProgressStatus.NO_CHECKPOINT
    }

    bench.commit(contract, NOON, NOON + 5 * MINUTE)
    bench.commit(contract, NOON + 5 * MINUTE, NOON + 10 * MINUTE, [1])
    now = NOON + 30 * MINUTE
    found = check_cells(subject, cells, now)
    words = [found[cell].status for cell in cells]
    # Of the second window one slice is missing; the third has no rows in BigQuery either.
    assert words[:2] == [ProgressStatus.HEALTHY] * 2
    assert words[2:4] == [ProgressStatus.LAGGING, ProgressStatus.HEALTHY]
    assert words[4:] == [ProgressStatus.HEALTHY] * 2
    late = found[cells[2]]
    assert (late.passed, late.severity) == (False, Severity.WARN)
    assert late.metadata["rows_waiting"] == 2
    assert "2 rows of its window wait, the oldest of 2026-01-05 12:06:00 UTC" in late.message
    assert f"bqh sync {contract.id} --from 2026-01-05T12:05 --to 2026-01-05T12:10" in late.message
    assert "every row up to 2026-01-05 12:05:00 UTC" in found[cells[0]].message
    assert "no row of it is due" in found[cells[4]].message


@pytest.mark.promise("M1")
def test_while_bigquery_is_away_what_a_cell_lacks_counts_as_due(
    bench: Bench, bigquery_connection: BigQueryConnection, nowhere: str
) -> None:
    contract = bench.contract(bench.source(NOON), NOON)
    bench.commit(contract, NOON, NOON + 5 * MINUTE)
    away = bigquery_connection.model_copy(update={"endpoint": nowhere, "max_retries": 0})
    subject = Subject(contract, Queries(BigQueryCalls(away)), bench.harper, bench.ledger)
    cells = cells_of(NOON, NOON + 10 * MINUTE)
    found = check_cells(subject, cells)
    assert [found[cell].passed for cell in cells] == [True, True, False, False]
    assert found[cells[2]].status is ProgressStatus.SEVERELY_LAGGING
    assert "BigQuery could not be asked" in found[cells[2]].message


@pytest.mark.promise("M2", "O3")
def test_smoke_of_a_cell_is_that_of_its_window_and_of_the_newest_that_of_the_last_minutes(
    bench: Bench,
) -> None:
    newest = just_now()
    start = newest - 30 * MINUTE
    source = bench.source(start, start + 6 * MINUTE, newest)
    contract = bench.contract(source, start)
    bench.store(contract, start)
    cells = [*cells_of(start, start + 15 * MINUTE), *cells_of(newest, newest + 5 * MINUTE)]
    found = check_table("smoke", bench.subject(contract), cells)
    words = [found.of_cells[cell].status for cell in cells]
    assert words[:2] == [SmokeStatus.HEALTHY] * 2
    assert words[2:4] == [SmokeStatus.NO_RECENT_DATA] * 2
    assert words[4:6] == [SmokeStatus.HEALTHY] * 2
    assert found.of_cells[cells[2]].metadata["source_rows"] == 1
    assert "BigQuery has none either" in found.of_cells[cells[4]].message
    assert found.of_cells[cells[6]] == found.of_table  # what was due since the newest row
