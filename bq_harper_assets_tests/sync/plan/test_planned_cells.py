"""An open window is topped up, or compared where it has to be."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from bq_harper_assets.instants import instant_at
from bq_harper_assets.ledger.records import Mode
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.revisit.open_window import (
    Live,
)
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.revisit.test_open_window import MINUTE


@pytest.mark.promise("H6")
@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.spark
def test_an_open_window_is_topped_up_compared_when_it_changed_and_reconciled_when_it_closed(
    sync: Sync, tables: SmallTables
) -> None:
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    half = hour + 30 * MINUTE
    source = tables.make_from(
        f"SELECT n AS number, 'as it was' AS name,"
        f" TIMESTAMP_ADD(TIMESTAMP '{hour:%F %T}+00', INTERVAL n SECOND) AS ts"
        " FROM UNNEST(GENERATE_ARRAY(0, 3599, 60)) AS n"
    )
    lag = datetime.now(UTC) - half  # the sync stays so far behind that half of the hour is open
    table = sync.contract(source, key=("number",), safety_lag=int(lag.total_seconds()))
    closing = table.model_copy(update={"safety_lag": timedelta(0)})
    live: Live
    steps = iter(("late at the end", "changed in the held part", "closed"))
    step = "first"

    def poll(cells: Sequence[Cell]) -> TurnReport:
        return sync.run(closing if step == "closed" else table, cells)

    def between(seconds: float) -> None:
        nonlocal step
        step = next(steps)
        upto = instant_at(live.reports[-1].cells[0].upto)
        if step == "late at the end":
            tables.run(f"INSERT INTO {source.sql} (number, name, ts) VALUES (7, 'new', '{upto}')")
        if step == "changed in the held part":
            tables.run(f"UPDATE {source.sql} SET name = 'changed' WHERE number = 60")

    live = Live(sync=poll, contract=table, ledger=sync.stores.ledger, sleep=between)
    assert live.follow(datetime.now(UTC) + timedelta(hours=1))
    modes = [{cell.mode for cell in each.cells} for each in live.reports]
    assert modes == [{Mode.COPY}, {Mode.TOPUP}, {Mode.RECONCILE}, {Mode.RECONCILE}]
    written = [sum(cell.result.written for cell in each.cells) for each in live.reports]
    assert written[1:3] == [1, 1]
    assert written[0] + written[3] == 60
    assert [each.cells[0].is_open for each in live.reports] == [True, True, True, False]
    names = {row["number"]: row["name"] for row in sync.rows(table)}
    assert (len(names), names[7], names[60]) == (61, "new", "changed")
