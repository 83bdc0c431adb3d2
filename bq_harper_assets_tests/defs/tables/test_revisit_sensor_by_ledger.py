"""What the revisit sensor asks for by the ledger alone, while BigQuery need not be looked at."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from dagster import DagsterInstance, DagsterRunStatus, RunRequest, build_sensor_context, job
from pydantic import SecretStr

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.partitions import RANGE_END, RANGE_START, newest_closed, range_tags
from bq_harper_assets.defs.resources import (
    LEDGER_URLS,
    BigQueryToHarperResource,
    LedgerResource,
    SparkResource,
)
from bq_harper_assets.defs.tables.revisit_sensor import (
    BILLED,
    END,
    LOOK_ERROR,
    PHASE,
    REASON,
    build_revisit_sensor,
    unloaded_windows,
)
from bq_harper_assets.defs.tables.schedules import build_job
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.validation.committed import DAY, MINUTE, begun, committed, ships

SOON, LONG_AGO = "2999-01-01T00:00:00Z", "2000-01-01T00:00:00Z"
HOUR = timedelta(hours=1)


@job
def sync_orders() -> None:
    """Named as the job of the table is."""


@dataclass
class Ticking:
    """The sensor of a table whose first window began three hours ago."""

    instance: DagsterInstance
    ledger: Ledger
    resources: BigQueryToHarperResource
    contract: TableContract
    cursor: dict[str, Any] = field(default_factory=lambda: {"next_look": SOON})
    skipped: str = ""

    def tick(self, **cursor: Any) -> list[RunRequest]:
        start = self.contract.sync.start_timestamp
        assert start
        sensor = build_revisit_sensor(self.contract, start, build_job(self.contract))
        context = build_sensor_context(
            self.instance,
            cursor=json.dumps(self.cursor | cursor),
            resources={"bigquery_to_harper": self.resources},
        )
        told: Any = sensor(context)
        self.cursor = json.loads(told.cursor)
        self.skipped = str(told.skip_reason.skip_message) if told.skip_reason else ""
        return list(told.run_requests or ())

    def later(self, **cursor: Any) -> list[RunRequest]:
        return self.tick(next_poll=LONG_AGO, **cursor)

    def minutes(self) -> tuple[float, float]:
        """Where the first window begins and the newest closed one ends, in minutes after DAY."""
        start = self.contract.sync.start_timestamp
        assert start
        end = newest_closed(self.contract, self.ledger.now()).end
        return (start - DAY) / MINUTE, (end - DAY) / MINUTE


@pytest.fixture
def ticking(tmp_path: Path, nowhere: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ticking]:
    url = empty_ledger(tmp_path / "ledger.db")
    monkeypatch.setitem(LEDGER_URLS, url, SecretStr(url))
    with DagsterInstance.ephemeral() as instance, open_ledger(url) as ledger:
        resources = BigQueryToHarperResource(
            bigquery=BigQueryConnectionResource(project="p", endpoint=nowhere, max_retries=0),
            harper=HarperResource(url=nowhere, user="u", password="p"),
            ledger=LedgerResource(place=url),
            spark=SparkResource(spark_config={}, root=str(tmp_path), log=str(tmp_path / "log")),
        )
        start = (ledger.now() - 3 * HOUR).replace(minute=0, second=0, microsecond=0)
        contract = ships(window="60m", slices=2, sync={"start_timestamp": start}, live=False)
        yield Ticking(instance, ledger, resources, contract)


def _range(tags: Mapping[str, str]) -> tuple[str, str]:
    return tags[RANGE_START], tags[RANGE_END]


def test_windows_that_the_ledger_lacks_are_asked_for_with_why_and_in_which_phase(
    ticking: Ticking,
) -> None:
    requests = ticking.tick()
    assert requests
    start, end = ticking.minutes()
    for each in requests:
        assert (each.tags[REASON], each.tags[BILLED]) == ("missing", "0")
        assert each.tags[PHASE] == ticking.cursor["phase"]
        assert LOOK_ERROR not in each.tags
    assert len({each.tags[END] for each in requests}) == len(requests)
    firsts = [_range(each.tags)[0] for each in requests]
    lasts = [_range(each.tags)[1] for each in requests]
    assert min(firsts) == f"{DAY + start * MINUTE:%FT%H:%M}|s00"
    assert max(lasts) == f"{DAY + (end - 60) * MINUTE:%FT%H:%M}|s01"
    assert ticking.cursor["due"]["missing"] == 2 * (end - start) / 60
    assert ticking.tick() == []
    assert ticking.skipped.startswith("the next poll is at ")


def test_nothing_is_asked_for_once_all_is_synced(ticking: Ticking) -> None:
    committed(ticking.ledger, ticking.contract, *ticking.minutes(), slices=[0, 1])
    assert ticking.tick() == []
    told = f"nothing is due ({ticking.cursor['phase']}): by the ledger no closed window is missing"
    assert ticking.skipped.startswith(told)
    assert ticking.skipped.endswith("; BigQuery was not looked at yet")
    now = ticking.ledger.now()
    seen = {"looked_at": now.isoformat(), "looked": [[DAY.isoformat(), (DAY + HOUR).isoformat()]]}
    assert ticking.later(**seen) == []
    assert "those from 2026-01-05T00:00 to 2026-01-05T01:00 are as BigQuery had them at" in (
        ticking.skipped
    )
    assert "bqh sync orders --changed" in ticking.skipped


def test_windows_at_which_a_run_works_are_not_asked_for_again(ticking: Ticking) -> None:
    start, end = ticking.minutes()
    windows = windows_between(DAY + start * MINUTE, DAY + end * MINUTE, ticking.contract.window)
    cells = [Cell(window, part) for window in windows for part in (0, 1)]
    ticking.instance.create_run_for_job(
        sync_orders, status=DagsterRunStatus.STARTED, tags=range_tags(cells)
    )
    assert ticking.tick() == []
    assert ticking.skipped == f"{len(cells)} cells are due, and their runs have not ended yet"


def test_cells_that_the_delete_guard_refused_are_told_with_what_to_type(ticking: Ticking) -> None:
    start, end = ticking.minutes()
    committed(ticking.ledger, ticking.contract, start + 60, end, slices=[0, 1])
    leases, batches = begun(ticking.ledger, ticking.contract, start, start + 60, slices=[0, 1])
    for batch in batches:
        ticking.ledger.refuse_batch(batch, "too many rows would be lost")
    ticking.ledger.release(leases)
    assert ticking.tick() == []
    assert ticking.skipped.startswith("2 cells were refused by the delete guard, the first is ")
    assert "|s00, and are asked for again" in ticking.skipped
    assert "type: bqh sync orders --from " in ticking.skipped


def test_a_table_that_is_declared_otherwise_is_told_and_its_cursor_kept(ticking: Ticking) -> None:
    committed(ticking.ledger, ticking.contract, *ticking.minutes(), slices=[0, 1])
    ticking.contract = ticking.contract.model_copy(update={"slices": 3})
    before = {"next_look": SOON, "phase": "catchup"}
    assert ticking.tick(**before) == []
    assert "slices" in ticking.skipped
    assert ticking.cursor["phase"] == "catchup"


def test_a_look_that_fails_lets_no_window_wait_that_is_missing(ticking: Ticking) -> None:
    start, end = ticking.minutes()
    committed(ticking.ledger, ticking.contract, start, end - 60, slices=[0, 1])
    [request] = ticking.tick(next_look=LONG_AGO)
    assert (request.tags[REASON], bool(request.tags[LOOK_ERROR])) == ("missing", True)
    assert ticking.cursor["look_error"]
    assert ticking.cursor["looked_at"] is None
    assert ticking.cursor["next_look"] > ticking.ledger.now().isoformat()
    committed(ticking.ledger, ticking.contract, end - 60, end, slices=[0, 1])
    assert ticking.later() == []
    assert "BigQuery could not be looked at for late, changed and deleted rows" in ticking.skipped


def test_windows_before_the_loaded_partitions_are_told() -> None:
    known = ships()
    assert unloaded_windows(known, DAY, None) == unloaded_windows(known, DAY, DAY) == ""
    told = unloaded_windows(known, DAY, DAY - HOUR)
    assert told.startswith(
        "windows of orders from 2026-01-04T23:00 to 2026-01-05T00:00 are not partitions yet"
    )
    assert told.endswith("bqh sync orders")
