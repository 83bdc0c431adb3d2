"""The four words of the smoke check: each by a real state of Harper and BigQuery."""

from datetime import timedelta

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.retries.breaker import Breakers
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.harper.answers import Attribute
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.validation.progress.progress_check import check_progress
from bq_harper_assets.validation.smoke import MOST_COUNTED, check_smoke
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets.validation.verdict import Severity, SmokeStatus
from bq_harper_assets_tests.stores.small_tables import utc
from bq_harper_assets_tests.validation.conftest import MINUTE, Bench

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]
NOON = utc(2026, 1, 5, 12)
SECOND = timedelta(seconds=1)


@pytest.mark.promise("M2")
def test_rows_of_the_last_five_minutes_are_found_by_a_users_query(bench: Bench) -> None:
    contract = bench.contract(bench.source(NOON), NOON)
    bench.store(contract, NOON - 5 * MINUTE, NOON - MINUTE, NOON, NOON + MINUTE)
    verdict = check_smoke(bench.subject(contract), NOON)
    assert (verdict.status, verdict.passed) == (SmokeStatus.HEALTHY, True)
    assert verdict.metadata["rows_found"] == 2
    assert "finds 2 rows" in verdict.message


def test_rows_are_counted_up_to_a_limit(bench: Bench) -> None:
    contract = bench.contract(bench.source(NOON), NOON)
    bench.store(contract, *(NOON - n * timedelta(milliseconds=1) for n in range(1, 1100)))
    verdict = check_smoke(bench.subject(contract), NOON)
    assert verdict.metadata["rows_found"] == MOST_COUNTED
    assert f"at least {MOST_COUNTED:,} rows" in verdict.message


@pytest.mark.promise("M2")
def test_rows_that_wait_are_fine_for_five_minutes_a_warning_until_ten_and_then_an_error(
    bench: Bench,
) -> None:
    contract = bench.contract(bench.source(NOON - MINUTE, NOON, NOON + MINUTE), NOON - 5 * MINUTE)
    bench.store(contract, NOON - MINUTE, utc(2099, 1, 1))
    bench.commit(contract, NOON - 5 * MINUTE, NOON)
    subject = bench.subject(contract)
    due = NOON + contract.safety_lag  # the first row that Harper lacks
    for waited, passed, severity in (
        (5 * MINUTE, True, None),
        (5 * MINUTE + SECOND, False, Severity.WARN),
        (10 * MINUTE, False, Severity.WARN),
        (10 * MINUTE + SECOND, False, Severity.ERROR),
    ):
        verdict = check_smoke(subject, due + waited)
        assert verdict.passed is passed, waited
        assert verdict.metadata["newest_row"] == (NOON - MINUTE).isoformat()
        if severity:
            assert (verdict.status, verdict.severity) == (SmokeStatus.NO_RECENT_DATA, severity)
            assert "BigQuery has 2" in verdict.message
        # Progress calls the same state lagging only where smoke calls it an error.
        assert check_progress(subject, due + waited).passed is (severity is not Severity.ERROR)


@pytest.mark.promise("M2")
def test_a_table_whose_source_is_silent_too_is_healthy_and_says_so(bench: Bench) -> None:
    contract = bench.contract(bench.source(NOON - 60 * MINUTE, utc(2099, 1, 1)), NOON)
    bench.store(contract, NOON - 60 * MINUTE)
    verdict = check_smoke(bench.subject(contract), NOON)
    assert (verdict.status, verdict.passed) == (SmokeStatus.HEALTHY, True)
    assert "BigQuery has none either" in verdict.message


def test_a_table_that_syncs_closed_windows_only_is_judged_by_them(bench: Bench) -> None:
    start = NOON - 60 * MINUTE
    source = bench.source(start, NOON)
    contract = bench.contract(source, start, live=False, window="60m")
    bench.store(contract, start)
    subject = bench.subject(contract)
    assert check_smoke(subject, NOON + 60 * MINUTE).passed
    # The row at noon is in the window until 13:00, which is due at 13:01.
    assert check_smoke(subject, NOON + 66 * MINUTE).passed
    late = check_smoke(subject, NOON + 72 * MINUTE)
    assert (late.status, late.severity) == (SmokeStatus.NO_RECENT_DATA, Severity.ERROR)


@pytest.mark.promise("M2")
def test_a_table_that_is_not_there_and_a_query_that_fails_have_words_of_their_own(
    bench: Bench, harper_connection: HarperConnection, nowhere: str
) -> None:
    contract = bench.contract(bench.source(NOON), NOON)
    missing = check_smoke(bench.subject(contract), NOON)
    assert (missing.status, missing.severity) == (SmokeStatus.TABLE_NOT_FOUND, Severity.ERROR)

    bench.harper.create_table(contract.target.table, "id", [Attribute(name="id", type="String")])
    unsearchable = check_smoke(bench.subject(contract), NOON)
    assert (unsearchable.status, unsearchable.passed) == (SmokeStatus.QUERY_FAILED, False)
    assert "ts" in unsearchable.message

    stopped = harper_connection.model_copy(update={"url": nowhere})
    with HarperClient(stopped, retry=RetryPolicy(max_retries=0), breakers=Breakers()) as away:
        verdict = check_smoke(bench.subject(contract, away), NOON)
    assert (verdict.status, verdict.severity) == (SmokeStatus.QUERY_FAILED, Severity.ERROR)


@pytest.mark.promise("M2")
def test_a_run_of_old_windows_is_judged_by_the_newest_of_them_and_not_by_now(bench: Bench) -> None:
    source = bench.source(NOON, NOON + 6 * MINUTE)
    contract = bench.contract(source, NOON)
    bench.store(contract, NOON + MINUTE)
    subject = bench.subject(contract)
    windows = [Window(NOON + n * 5 * MINUTE, NOON + (n + 1) * 5 * MINUTE) for n in range(3)]
    years_later = utc(2028, 1, 1)
    there, gone, empty = [check_smoke(subject, years_later, window) for window in windows]
    assert (there.status, there.metadata["rows_found"]) == (SmokeStatus.HEALTHY, 1)
    assert (gone.status, gone.severity) == (SmokeStatus.NO_RECENT_DATA, Severity.ERROR)
    assert (empty.status, empty.passed) == (SmokeStatus.HEALTHY, True)
    assert "BigQuery has none either" in empty.message


def test_silence_is_a_warning_while_bigquery_cannot_be_asked(
    bench: Bench, bigquery_connection: BigQueryConnection, nowhere: str
) -> None:
    contract = bench.contract(bench.source(NOON), NOON)
    bench.store(contract, NOON)
    away = bigquery_connection.model_copy(update={"endpoint": nowhere, "max_retries": 0})
    subject = Subject(contract, Queries(BigQueryCalls(away)), bench.harper, bench.ledger)
    verdict = check_smoke(subject)
    assert (verdict.status, verdict.severity) == (SmokeStatus.NO_RECENT_DATA, Severity.WARN)
    assert "BigQuery could not be asked" in verdict.message
