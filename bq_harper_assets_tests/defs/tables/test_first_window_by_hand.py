"""Where the first window begins: as declared, as recorded, or on the day of the oldest row."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bq_harper_assets.defs.tables.first_window import (
    declared_start,
    find_start,
    first_window_start,
    known_start,
    provisional_start,
)
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.stores.bigquery.by_hand import Asked, BigQueryByHand
from bq_harper_assets_tests.validation.committed import DAY, MINUTE, ships

UNDECLARED = ships(sync={})


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(empty_ledger(tmp_path / "ledger.db")) as opened:
        yield opened


def test_a_declared_start_is_that_of_its_window_and_goes_before_the_recorded(
    ledger: Ledger,
) -> None:
    declared = ships(sync={"start_timestamp": DAY + 7 * MINUTE})
    ledger.record_start(declared.id, DAY - 60 * MINUTE)
    assert declared_start(declared) == known_start(declared, ledger) == DAY + 5 * MINUTE
    assert declared_start(UNDECLARED) is None
    assert known_start(UNDECLARED, ledger) == DAY - 60 * MINUTE


def test_the_day_of_the_oldest_row_is_put_on_record_and_not_looked_for_again(
    ledger: Ledger,
) -> None:
    def oldest(asked: Asked) -> list[dict[str, datetime | None]]:
        return [{"oldest": DAY + 100 * MINUTE if len(service.asked) > 1 else None}]

    with BigQueryByHand(oldest) as service:
        bigquery = service.connection
        assert find_start(bigquery, UNDECLARED, ledger) is None  # it has no row yet
        assert ledger.start_of(UNDECLARED.id) is None
        assert find_start(bigquery, UNDECLARED, ledger) == DAY
        assert ledger.start_of(UNDECLARED.id) == DAY
        assert find_start(bigquery, UNDECLARED, ledger) == DAY
        assert first_window_start(bigquery, UNDECLARED, ledger) == DAY
    assert len(service.asked) == 2


def test_without_an_answer_windows_begin_today_for_now(ledger: Ledger) -> None:
    before = datetime.now(UTC)
    with BigQueryByHand(lambda asked: None) as service:
        assert find_start(service.connection, UNDECLARED, ledger) is None
        start = first_window_start(service.connection, UNDECLARED, ledger)
    assert start in {provisional_start(before), provisional_start(datetime.now(UTC))}
    assert ledger.start_of(UNDECLARED.id) is None
    assert provisional_start(DAY + timedelta(hours=23)) == DAY
