"""The five words of progress: each by a real state of BigQuery and the ledger."""

from datetime import timedelta

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.validation.progress.progress_check import (
    check_progress,
    gaps,
)
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets.validation.verdict import ProgressStatus, Severity
from bq_harper_assets_tests.stores.small_tables import utc
from bq_harper_assets_tests.validation.conftest import MINUTE, Bench, just_now

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)
NONE = timedelta(0)


@pytest.mark.promise("M1", "G3")
def test_a_table_becomes_lagging_and_healthy_as_its_windows_are_synced(bench: Bench) -> None:
    base = just_now()
    start = base - 2 * HOUR
    source = bench.source(
        *(start + minutes * MINUTE for minutes in range(0, 119, 3)),
        base - 4 * MINUTE,
        None,
        start - HOUR,
        utc(2099, 1, 1),
    )
    contract = bench.contract(source, start)
    subject = bench.subject(contract)
    fresh = check_progress(subject)
    assert (fresh.status, fresh.passed) == (ProgressStatus.NO_CHECKPOINT, False)
    assert f"bqh sync {contract.id}" in fresh.message

    bench.commit(contract, start, start + 10 * MINUTE)
    far = check_progress(subject)
    assert (far.status, far.severity) == (ProgressStatus.SEVERELY_LAGGING, Severity.ERROR)
    assert far.metadata["waiting_since"] == (start + 12 * MINUTE).isoformat()

    bench.commit(contract, start + 10 * MINUTE, base - 20 * MINUTE)
    near = check_progress(subject)
    assert (near.status, near.severity) == (ProgressStatus.LAGGING, Severity.WARN)
    assert near.metadata["synced_until"] == (base - 20 * MINUTE).isoformat()

    bench.commit(contract, base - 20 * MINUTE, base)
    done = check_progress(subject)
    # All that is due is there, but for a row that never will be: somebody should know.
    assert (done.status, done.passed) == (ProgressStatus.ROWS_WITHOUT_TIME, False)
    assert done.severity is Severity.WARN
    assert "1 row of BigQuery without ts will never be copied" in done.message
    assert {name: done.metadata[name] for name in done.metadata if name.startswith("rows_")} == {
        "rows_waiting": 0,
        "rows_without_time": 1,
        "rows_before_start": 1,
        "rows_in_future": 1,
    }


@pytest.mark.promise("M1")
def test_a_run_that_was_killed_while_the_source_grows_is_a_stall_after_ten_minutes(
    bench: Bench,
) -> None:
    base = just_now()
    source = bench.source(base - 9 * MINUTE, base + MINUTE)
    contract = bench.contract(source, base - 10 * MINUTE)
    subject = bench.subject(contract)
    bench.commit(contract, base - 10 * MINUTE, base)
    bench.begin(contract, base, base + 5 * MINUTE)
    # The row at minute 1 is due at minute 2.
    still = check_progress(subject, base + 12 * MINUTE)
    assert still.status is ProgressStatus.HEALTHY
    later = base + 20 * MINUTE
    stalled = check_progress(subject, later)
    assert (stalled.status, stalled.severity) == (ProgressStatus.STALLED, Severity.ERROR)
    assert stalled.metadata["rows_waiting"] == 1
    assert stalled.metadata["overdue_seconds"] == (18 * MINUTE).total_seconds()
    assert f"bqh sync {contract.id}" in stalled.message
    bench.tables.run(f"DELETE FROM {source.sql} WHERE ts >= TIMESTAMP '{base:%F %T}+00'")
    assert check_progress(subject, later).passed


@pytest.mark.promise("M1")
def test_a_quiet_table_is_healthy_and_a_far_future_row_does_not_make_a_lagging_one_so(
    bench: Bench,
) -> None:
    base = just_now() - HOUR
    source = bench.source(base + MINUTE, utc(2099, 1, 1))
    contract = bench.contract(source, base)
    bench.commit(contract, base, base + 5 * MINUTE)
    subject = bench.subject(contract)
    quiet = check_progress(subject, base + 50 * HOUR)
    assert (quiet.status, quiet.passed) == (ProgressStatus.HEALTHY, True)
    assert quiet.message.startswith("nothing is due")
    bench.add(source, base + 6 * MINUTE)
    assert check_progress(subject, base + 50 * HOUR).status is ProgressStatus.STALLED


@pytest.mark.promise("M1")
@pytest.mark.promise("M12")
def test_a_slice_that_was_left_behind_is_named(bench: Bench) -> None:
    base = just_now() - 2 * HOUR
    contract = bench.contract(bench.source(base + 12 * MINUTE, base + 40 * MINUTE), base)
    bench.commit(contract, base, base + 5 * MINUTE)
    bench.commit(contract, base + 5 * MINUTE, base + 30 * MINUTE, [0])
    verdict = check_progress(bench.subject(contract))
    assert verdict.metadata["slices_behind"] == ["s01"]
    assert verdict.metadata["waiting_since"] == (base + 12 * MINUTE).isoformat()
    assert "behind the other slices: s01" in verdict.message


def test_rows_in_a_newer_window_that_is_synced_already_do_not_wait(bench: Bench) -> None:
    base = just_now() - 2 * HOUR
    contract = bench.contract(bench.source(base + MINUTE, base + 12 * MINUTE), base)
    bench.commit(contract, base, base + 5 * MINUTE)
    table = bench.commit(contract, base + 10 * MINUTE, base + 15 * MINUTE)
    assert check_progress(bench.subject(contract)).metadata["rows_waiting"] == 0
    cells = bench.ledger.cells(table, base, base + HOUR)
    assert gaps(table, cells, base + 5 * MINUTE, base + 20 * MINUTE) == [
        (base + 5 * MINUTE, base + 10 * MINUTE),
        (base + 15 * MINUTE, base + 20 * MINUTE),
    ]
    assert gaps(table, cells, base + 5 * MINUTE, base + 7 * MINUTE) == [
        (base + 5 * MINUTE, base + 7 * MINUTE)
    ]


def test_while_bigquery_is_away_every_unsynced_window_counts_as_due(
    bench: Bench, bigquery_connection: BigQueryConnection, nowhere: str
) -> None:
    base = just_now() - 3 * HOUR
    contract = bench.contract(bench.source(base), base)
    bench.commit(contract, base, base + 5 * MINUTE)
    away = bigquery_connection.model_copy(update={"endpoint": nowhere, "max_retries": 0})
    queries = Queries(BigQueryCalls(away))
    subject = Subject(contract, queries, bench.harper, bench.ledger)
    verdict = check_progress(subject)
    assert verdict.status is ProgressStatus.SEVERELY_LAGGING
    assert "BigQuery could not be asked" in verdict.message
    assert "rows_in_future" not in verdict.metadata
