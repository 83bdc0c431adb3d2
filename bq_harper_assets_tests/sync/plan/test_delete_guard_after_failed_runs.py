"""Rows that a run took out before it failed: the guard counts them, and counts none twice."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.ledger.errors import LedgerUnavailable
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import BatchState
from bq_harper_assets.sync.errors import TurnFailed
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import DAY, ONE, ROWS, Table, made, total
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
HOUR = timedelta(hours=1)
POLICIES = pytest.mark.parametrize("policy", ["mirror", "flag"])


@pytest.fixture
def proxy(harper_connection: HarperConnection) -> Iterator[FaultProxy]:
    with FaultProxy(harper_connection.url) as proxy:
        yield proxy


def _live(table: Table) -> int:
    """Rows that Harper holds and shows as alive."""
    return sum(row.get("_deletedAt") is None for row in table.sync.rows(table.contract))


def _dies_before_its_commit(ledger: Ledger, table: Table, hour: int) -> None:
    def away(*args: Any, **named: Any) -> None:
        raise LedgerUnavailable("the test's ledger", "it went away")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "commit_cells", away)
        with pytest.raises(LedgerUnavailable):
            table.run(DAY + hour * HOUR, DAY + (hour + 1) * HOUR)


@pytest.mark.promise("N12")
@POLICIES
def test_a_table_is_not_emptied_by_runs_that_fail_each_time(
    sync: Sync, ledger: Ledger, tables: SmallTables, policy: str
) -> None:
    source = tables.make_from(ROWS.format(last=28_799, step=12))
    table = Table(
        sync=sync,
        tables=tables,
        source=source,
        contract=sync.contract(source, slices=1, deletes=policy),
    )
    end = DAY + 8 * HOUR
    table.run(DAY, end)
    assert _live(table) == 2_400
    table.change("DELETE FROM T WHERE TRUE")
    for hour in range(3):
        _dies_before_its_commit(ledger, table, hour)
    with pytest.raises(TurnFailed) as failed:
        table.run(DAY + 3 * HOUR, DAY + 4 * HOUR)
    told = str(failed.value)
    assert "would lose 300 of the 300 rows that the target holds of its 1 cells; with the" in told
    assert "900 rows that other runs took out, or were about to take out, since" in told
    assert "UTC it would be 1,200 of 1,200. Nothing of it was written." in told
    table.run(DAY, DAY + 3 * HOUR)  # done now, and their rows are still missed
    with pytest.raises(TurnFailed, match="it would be 1,200 of 1,200"):
        table.run(DAY + 3 * HOUR, DAY + 4 * HOUR)
    assert _live(table) == 1_500
    report = table.run(DAY, end, allow_deletes=True)
    assert _live(table) == 0
    assert total(report, "deleted") + total(report, "flagged") == 1_500


@POLICIES
@pytest.mark.parametrize("gone", [0, 1_000, 1_332])
def test_rows_that_are_honestly_gone_are_taken_out_by_a_retry(
    sync: Sync, ledger: Ledger, tables: SmallTables, proxy: FaultProxy, policy: str, gone: int
) -> None:
    """More than a thousand of 3,600, and less than half; of them so many went at the first try."""
    harper = sync.stores.harper.model_copy(update={"url": proxy.url})
    spoilt = replace(sync, stores=replace(sync.stores, harper=harper))
    table = made(spoilt, tables, last=3_599, step=1, slices=1, deletes=policy)
    table.change("DELETE FROM T WHERE number < 1332")
    if gone == 1_332:
        _dies_before_its_commit(ledger, table, 0)
        state = BatchState.PLANNED
    else:
        proxy.on(
            Answer(403, {"error": "not for you"}),
            operation="delete" if policy == "mirror" else "upsert",
            table=table.contract.target.table,
            matching=lambda seen: gone == 0 or seen.records == 332,
            times=99,
        )
        with pytest.raises(TurnFailed, match="not for you"):
            table.run(DAY, ONE)
        proxy.heal()
        state = BatchState.FAILED
    known = ledger.find_route(table.contract.id)
    assert known is not None
    left = ledger.history(known)[0]
    assert (left.state, left.deletes_intended, left.rows_held) == (state, 1_332, 3_600)
    assert _live(table) == 3_600 - gone
    report = table.run(DAY, ONE)
    assert total(report, "deleted") + total(report, "flagged") == 1_332 - gone
    assert _live(table) == 2_268


def test_of_runs_side_by_side_each_counts_what_the_other_is_about_to_take_out(
    sync: Sync, ledger: Ledger, tables: SmallTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a backfill has them: one for each slice, and each loses less than the guard lets pass."""
    table = made(sync, tables, last=3_599, step=2, slices=2)
    cells = sync.cells(table.contract, DAY, ONE)
    table.change("DELETE FROM T WHERE TRUE")
    both, intend = threading.Barrier(2), ledger.intend_deletes

    def together(*args: Any, **named: Any) -> None:
        intend(*args, **named)
        both.wait(60)

    def run(part: int) -> TurnReport | TurnFailed:
        try:
            return sync.run(table.contract, [cells[part]])
        except TurnFailed as failed:
            return failed

    monkeypatch.setattr(ledger, "intend_deletes", together)
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(run, (0, 1)))
    for outcome in outcomes:
        assert "or were about to take out" in str(outcome)
        assert "it would be 1,800 of 1,800" in str(outcome)
    assert len(sync.rows(table.contract)) == 1_800

    monkeypatch.undo()
    assert isinstance(run(0), TurnReport)  # what was refused counts for nobody
    assert "rows that earlier runs took out since" in str(run(1))
    assert 800 < len(sync.rows(table.contract)) < 1_000
