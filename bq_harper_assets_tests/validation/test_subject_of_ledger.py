"""What a stored time means, and which column of the newest version it is."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.schema.logical import Column, Kind, TableSchema
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.validation.subject import Subject, instant_of, stored_instant
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.validation.committed import DAY, MINUTE, NUMBER, registered, ships

HOUR = 60 * MINUTE


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(empty_ledger(tmp_path / "ledger.db")) as opened:
        yield opened


def subject_of(ledger: Ledger, **declared: Any) -> Subject:
    """No store is asked."""
    nobody: Any = None
    return Subject(ships(**declared), nobody, nobody, ledger)


def test_a_table_that_was_never_synced_has_no_route_and_a_timestamp(ledger: Ledger) -> None:
    subject = subject_of(ledger)
    assert subject.table() is None
    assert subject.time_column() == Column(name="event_time", kind=Kind.TIMESTAMP)


def test_the_time_column_is_as_the_newest_version_has_it(ledger: Ledger) -> None:
    subject = subject_of(ledger)
    route = registered(ledger, subject.contract)
    assert subject.table() == route
    assert subject.time_column() == Column(name="event_time", kind=Kind.TIMESTAMP)
    dated = TableSchema(columns=(NUMBER, Column(name="event_time", kind=Kind.DATE)))
    daily = ships(window="1d", live=False)
    ledger.record_schema(route, harper_plan(daily, dated).version.body(), 1)
    assert subject.time_column() == Column(name="event_time", kind=Kind.DATE)
    assert subject_of(ledger, timestamp_column="gone").time_column().kind is Kind.TIMESTAMP


@pytest.mark.parametrize(
    ("kind", "text", "instant"),
    [
        (Kind.TIMESTAMP, "2026-01-05T01:30:00+01:00", DAY + 30 * MINUTE),
        (Kind.TIMESTAMP, "2026-01-05T01:00:00Z", DAY + HOUR),
        (Kind.DATETIME, "2026-01-05T01:00:00", DAY + HOUR),
        (Kind.DATE, "2026-02-03", datetime(2026, 2, 3, tzinfo=UTC)),
    ],
)
def test_a_stored_time_is_an_instant_of_utc(kind: Kind, text: str, instant: datetime) -> None:
    assert instant_of(kind, text) == stored_instant(kind, text) == instant
    assert instant_of(kind, text).tzinfo is UTC


@pytest.mark.parametrize("stored", ["garbage", "", None, 1_767_571_200, True])
def test_what_is_no_time_is_no_instant(stored: object) -> None:
    assert stored_instant(Kind.TIMESTAMP, stored) is None
    assert stored_instant(Kind.DATE, stored) is None
