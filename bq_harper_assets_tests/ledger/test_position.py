"""The order of positions."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from bq_harper_assets.ledger.position import InstantPosition, PositionOrder

T = datetime(2026, 11, 16, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("later", "order"),
    [
        (timedelta(0), PositionOrder.EQUAL),
        (timedelta(microseconds=1), PositionOrder.AFTER),
        (timedelta(microseconds=-1), PositionOrder.BEFORE),
    ],
)
def test_instants_lie_in_the_order_of_time(later: timedelta, order: PositionOrder) -> None:
    given, known = InstantPosition(T + later), InstantPosition(T)
    assert given.compared_with(known.text) is order
    assert given.rank - known.rank == later // timedelta(microseconds=1)


def test_an_instant_reads_the_same_in_every_zone() -> None:
    elsewhere = InstantPosition(T.astimezone(timezone(timedelta(hours=5))))
    assert elsewhere.text == InstantPosition(T).text == "2026-11-16T07:00:00.000000Z"
    assert elsewhere.compared_with(InstantPosition(T).text) is PositionOrder.EQUAL
