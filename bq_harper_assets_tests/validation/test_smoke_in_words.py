"""What the smoke check asks of both stores, and what it says of their answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.validation import smoke
from bq_harper_assets.validation.smoke import check_smoke, now_of
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets.validation.verdict import Severity, SmokeStatus
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.stores.bigquery.by_hand import Answers, Asked, BigQueryByHand
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper, away, client_of, harper_with
from bq_harper_assets_tests.validation.committed import DAY, MINUTE, at, ships

NOW = DAY + 60 * MINUTE
NEVER: Answers = lambda asked: None  # noqa: E731


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(empty_ledger(tmp_path / "ledger.db")) as opened:
        yield opened


@contextmanager
def checking(
    ledger: Ledger, harper: MemoryHarper, answers: Answers = NEVER, **declared: Any
) -> Iterator[Subject]:
    with (
        BigQueryByHand(answers) as service,
        service.queries() as queries,
        client_of(harper) as client,
    ):
        yield Subject(ships(**declared), queries, client, ledger)


def holding(*minutes: float) -> MemoryHarper:
    """Harper with a row at each minute."""
    return harper_with({"Orders": [{"id": m, "event_time": at(m)} for m in minutes]})


def in_source(rows: int, oldest: datetime | None) -> Answers:
    """BigQuery with so many rows in the range that is asked for."""
    return lambda asked: [{"n0": rows, "oldest0": oldest}]


def test_rows_of_the_last_five_minutes_pass(ledger: Ledger) -> None:
    harper = holding(54.9, 55, 59.9, 60)
    with checking(ledger, harper) as subject:
        found = check_smoke(subject, NOW)
    assert (found.status, found.passed) == (SmokeStatus.HEALTHY, True)
    assert found.message == "the query finds 2 rows"
    assert found.metadata == {
        "from": "2026-01-05T00:55:00+00:00",
        "to": "2026-01-05T01:00:00+00:00",
        "rows_found": 2,
        "newest_row": None,
    }
    whole, counted = harper.of("search_by_conditions")
    assert (whole["limit"], whole["get_attributes"]) == (1, ["*"])
    assert (counted["limit"], counted["get_attributes"]) == (1_000, ["event_time"])


def test_a_count_that_reaches_its_limit_is_told_as_at_least(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smoke, "MOST_COUNTED", 2)
    with checking(ledger, holding(57, 58, 59)) as subject:
        assert check_smoke(subject, NOW).message == "the query finds at least 2 rows"


def test_no_row_passes_if_the_source_has_none_after_the_newest(ledger: Ledger) -> None:
    asked: list[str] = []

    def none(query: Asked) -> list[dict[str, Any]]:
        asked.append(query.sql)
        return [{"n0": 0, "oldest0": None}]

    with checking(ledger, holding(10, 20, 70), none) as subject:
        found = check_smoke(subject, NOW)
    assert (found.status, found.passed) == (SmokeStatus.HEALTHY, True)
    assert found.message == (
        "the query finds no row, and BigQuery has none either that should be there"
    )
    assert found.metadata["newest_row"] == "2026-01-05T00:20:00+00:00"
    [sql] = asked
    assert "00:20:00.000001" in sql
    lag = ships().safety_lag
    assert f"{NOW - lag:%F %T}" in sql


@pytest.mark.parametrize(
    ("overdue", "passed", "severity"),
    [
        (5 * MINUTE, True, Severity.ERROR),
        (5 * MINUTE + timedelta(seconds=1), False, Severity.WARN),
        (10 * MINUTE, False, Severity.WARN),
        (10 * MINUTE + timedelta(seconds=1), False, Severity.ERROR),
    ],
)
def test_rows_that_are_due_fail_by_how_late_they_are(
    overdue: timedelta, passed: bool, severity: Severity, ledger: Ledger
) -> None:
    oldest = NOW - ships().safety_lag - overdue
    with checking(ledger, holding(), in_source(1_000, oldest)) as subject:
        found = check_smoke(subject, NOW)
    assert (found.passed, found.severity) == (passed, severity)
    assert found.status is (SmokeStatus.HEALTHY if passed else SmokeStatus.NO_RECENT_DATA)
    assert found.metadata["source_rows"] == 1_000
    assert found.metadata["overdue_seconds"] == overdue.total_seconds()
    assert found.message == (
        "the query finds no row; BigQuery has 1,000, and the oldest of them, of "
        f"{oldest:%F %T} UTC, has been due for {overdue}"
    )


def test_without_an_answer_of_bigquery_no_row_is_a_warning(ledger: Ledger) -> None:
    with checking(ledger, holding()) as subject:
        found = check_smoke(subject, NOW)
        assert abs(now_of(subject) - datetime.now(NOW.tzinfo)) < MINUTE
    assert (found.passed, found.severity) == (False, Severity.WARN)
    assert found.status is SmokeStatus.NO_RECENT_DATA
    assert "BigQuery could not be asked if there are any" in found.message


def test_the_time_is_bigquerys_if_it_answers(ledger: Ledger) -> None:
    with checking(ledger, holding(59), lambda asked: [{"now": NOW}]) as subject:
        assert now_of(subject) == NOW
        assert check_smoke(subject).message == "the query finds 1 rows"


def test_an_empty_table_is_compared_with_the_source_from_its_start_on(ledger: Ledger) -> None:
    asked: list[str] = []

    def none(query: Asked) -> list[dict[str, Any]]:
        asked.append(query.sql)
        return [{"n0": 0, "oldest0": None}]

    start = DAY + 7 * MINUTE
    with checking(ledger, holding(), none, sync={"start_timestamp": start}) as subject:
        assert check_smoke(subject, NOW).passed
    with checking(ledger, holding(), none, sync={}) as subject:
        assert check_smoke(subject, NOW).passed
    assert "2026-01-05 00:07:00" in asked[0]
    assert "0001-01-01 00:00:00" in asked[1]


def test_a_newest_row_whose_text_is_no_time_is_as_none(ledger: Ledger) -> None:
    harper = harper_with({"Orders": [{"id": 1, "event_time": "1 garbage"}]})
    with checking(ledger, harper, in_source(0, None)) as subject:
        found = check_smoke(subject, NOW)
    assert (found.passed, found.metadata["newest_row"]) == (True, None)


def test_old_windows_that_are_synced_again_are_searched_themselves(ledger: Ledger) -> None:
    old = Window(DAY + 10 * MINUTE, DAY + 15 * MINUTE)
    with checking(ledger, holding(10, 12, 15), in_source(3, old.start)) as subject:
        found = check_smoke(subject, NOW, old)
        assert (found.passed, found.message) == (True, "the query finds 2 rows")
        assert found.metadata["from"] == "2026-01-05T00:10:00+00:00"
        assert found.metadata["to"] == "2026-01-05T00:15:00+00:00"
        empty = check_smoke(subject, NOW, Window(DAY + 20 * MINUTE, DAY + 25 * MINUTE))
        assert (empty.passed, empty.severity) == (False, Severity.ERROR)
        assert empty.metadata["source_rows"] == 3


@pytest.mark.parametrize(("late", "is_old"), [(timedelta(0), True), (-MINUTE, False)])
def test_a_window_is_old_once_the_next_has_closed(
    late: timedelta, is_old: bool, ledger: Ledger
) -> None:
    known = ships()
    end = NOW - known.window - known.safety_lag - late
    with checking(ledger, holding(59)) as subject:
        found = check_smoke(subject, NOW, Window(end - known.window, end))
    assert (found.metadata["to"] == end.isoformat()) == is_old


def test_a_search_that_fails_says_whether_the_table_is_missing(ledger: Ledger) -> None:
    with checking(ledger, MemoryHarper()) as subject:
        missing = check_smoke(subject, NOW)
    assert (missing.status, missing.passed) == (SmokeStatus.TABLE_NOT_FOUND, False)
    assert missing.metadata["to"] == NOW.isoformat()
    harper = holding(59)
    with checking(ledger, harper) as subject:
        harper.refuses = away
        failed = check_smoke(subject, NOW)
        old = check_smoke(subject, NOW, Window(DAY, DAY + 5 * MINUTE))
    assert (failed.status, failed.severity) == (SmokeStatus.QUERY_FAILED, Severity.ERROR)
    assert old.status is SmokeStatus.QUERY_FAILED
    assert old.metadata["from"] == DAY.isoformat()
