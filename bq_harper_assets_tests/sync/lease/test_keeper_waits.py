"""What a run says while it waits for a lease that another one holds and renews."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bq_harper_assets.activity import now_doing
from bq_harper_assets.ledger.errors import Holder, LeaseHeld
from bq_harper_assets.retries import waiting
from bq_harper_assets.retries.waiting import WAITS
from bq_harper_assets.sync.lease.keeper import Keeper, LeaseTimes
from bq_harper_assets.sync.stop_request import Stop

FIRST = datetime(2026, 1, 5, 12, 3, tzinfo=UTC)


class RenewedLedger:
    """Says no three times; meanwhile the holder has renewed its lease."""

    def __init__(self) -> None:
        self.asked = 0

    def acquire(self, *asked: object) -> str:
        self.asked += 1
        if self.asked > 3:
            return "the lease"
        until = FIRST + timedelta(minutes=self.asked)
        raise LeaseHeld(
            "orders", [Holder(slice=0, owner="9f56", epoch=1, until=until, host="host-7")]
        )


class LookingStop(Stop):
    def __init__(self) -> None:
        super().__init__()
        self.steps: list[str] = []

    def sleep(self, seconds: float) -> None:
        self.steps.append(str(now_doing()))
        WAITS.look()


def test_the_time_at_which_the_holder_must_renew_is_told_as_it_is_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "TOLD_AGAIN_AFTER_S", 0.0)
    ledger: Any = RenewedLedger()
    nothing: Any = None
    stop, said = LookingStop(), list[str]()
    times = LeaseTimes(patience=timedelta(minutes=4))
    keeper = Keeper(ledger, nothing, nothing, [0], "me", times, stop=stop)
    with WAITS.listen(said.append):
        assert keeper.acquire() == "the lease"
    ours = [line for line in said if "the lease of orders" in line]
    told = [line.partition("lose it at ")[2][:8] for line in ours]
    assert list(dict.fromkeys(told)) == ["12:04:00", "12:05:00", "12:06:00"]
    assert set(stop.steps) == {"waiting for the lease"}
