"""When the sensor of a live table asks for the next run, and what it says when it does not."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    DagsterInstance,
    DagsterRunStatus,
    SensorResult,
    SkipReason,
    build_sensor_context,
    job,
)
from pydantic import SecretStr

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.resources import LEDGER_URLS, LedgerResource
from bq_harper_assets.defs.tables.live_job import LiveCursor, build_live_sensor
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.sync.revisit.open_window import open_window
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.validation.committed import DAY, MINUTE, begun, ships

LIVE = ships(window="1d", live=True)  # its window stays the same while a test lasts


@job
def live_orders() -> None:
    """Named as the job of the table is."""


@dataclass
class Ticking:
    """The sensor of a table, with what it knows."""

    instance: DagsterInstance
    ledger: Ledger
    resource: LedgerResource

    def tick(
        self, contract: TableContract = LIVE, cursor: str | None = None
    ) -> SensorResult | SkipReason:
        context = build_sensor_context(
            self.instance, cursor=cursor, resources={"ledger": self.resource}
        )
        told: Any = build_live_sensor(contract)(context)
        return told  # type: ignore[no-any-return]

    def refusal(self, contract: TableContract = LIVE) -> str:
        """Why no run is asked for."""
        told = self.tick(contract)
        assert isinstance(told, SkipReason)
        return str(told.skip_message)

    def key(self, cursor: str | None = None) -> tuple[str, str]:
        """The key of the run that is asked for, and the next cursor."""
        told = self.tick(cursor=cursor)
        assert isinstance(told, SensorResult)
        [request] = told.run_requests or ()
        return str(request.run_key), str(told.cursor)


@pytest.fixture
def ticking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ticking]:
    url = empty_ledger(tmp_path / "ledger.db")
    monkeypatch.setitem(LEDGER_URLS, url, SecretStr(url))
    with DagsterInstance.ephemeral() as instance, open_ledger(url) as ledger:
        yield Ticking(instance, ledger, LedgerResource(place=url))


def test_runs_of_a_window_are_numbered_and_begin_anew_with_the_next(ticking: Ticking) -> None:
    window = open_window(LIVE, ticking.ledger.now()).key
    key, cursor = ticking.key()
    assert key == f"{window}#1"
    key, cursor = ticking.key(cursor)
    assert key == f"{window}#2"
    assert LiveCursor.model_validate_json(cursor) == LiveCursor(window=window, run=2)
    key, _ = ticking.key(LiveCursor(window="yesterday", run=7).model_dump_json())
    assert key == f"{window}#1"


def test_no_run_is_asked_for_while_one_goes_on(ticking: Ticking) -> None:
    ticking.instance.create_run_for_job(live_orders, status=DagsterRunStatus.STARTED)
    assert ticking.refusal() == "a live run goes on"


def test_after_a_run_that_failed_the_next_waits(ticking: Ticking) -> None:
    run = ticking.instance.create_run_for_job(live_orders, status=DagsterRunStatus.STARTED)
    ticking.instance.report_run_failed(run)
    assert ticking.refusal() == "the last run failed; the next is asked for in 0:05:00"


def test_a_table_that_is_declared_otherwise_than_it_was_synced_is_refused(
    ticking: Ticking,
) -> None:
    leases, _ = begun(ticking.ledger, LIVE, 0, 1)
    ticking.ledger.release(leases)
    assert "slices" in ticking.refusal(ships(window="1d", live=True, slices=3))
    ticking.key()


def test_a_window_that_the_delete_guard_refused_is_left_to_a_person(ticking: Ticking) -> None:
    now = ticking.ledger.now()
    window = open_window(LIVE, now)
    first = (window.start - DAY) / MINUTE
    upto = window.start + MINUTE
    leases, [batch] = begun(ticking.ledger, LIVE, first, first + 24 * 60, upto=upto)
    ticking.ledger.refuse_batch(batch, "too many rows would be lost")
    ticking.ledger.release(leases)
    told = ticking.refusal()
    assert told.startswith(f"{window.key} was refused by the delete guard")
    assert f"bqh sync orders --from {window.start:%Y-%m-%dT%H:%M} --allow-deletes" in told
