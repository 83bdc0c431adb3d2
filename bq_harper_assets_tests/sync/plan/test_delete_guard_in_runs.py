"""What the delete guard counts and says in real runs."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.errors import TurnFailed
from bq_harper_assets.sync.plan import delete_guard
from bq_harper_assets.sync.revisit.due_cells import Reason
from bq_harper_assets.sync.revisit.horizon import standing
from bq_harper_assets.sync.revisit.run_requests import asks
from bq_harper_assets.sync.turn import reconcile
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import (
    DAY,
    HOUR,
    KEYED,
    ONE,
    ROWS,
    THREE,
    TWO,
    Table,
    made,
    total,
)
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
MOST = 10  # rows that the guard lets pass here


@pytest.fixture(autouse=True)
def _few_rows_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delete_guard, "MOST_UNGUARDED_ROWS", MOST)


def refused(table: Table, **settings: bool) -> str:
    with pytest.raises(TurnFailed) as caught:
        table.run(**settings)
    return str(caught.value)


def test_a_keyless_window_that_is_updated_loses_nothing(sync: Sync, tables: SmallTables) -> None:
    table = made(sync, tables, slices=1)
    table.change("UPDATE T SET name = 'another' WHERE number < 3600")
    report = table.run()
    assert (total(report, "deleted"), total(report, "written")) == (60, 60)
    assert table.held == table.wanted
    table.change("DELETE FROM T WHERE number BETWEEN 3600 AND 4140")  # and later runs count none
    assert total(table.run(), "deleted") == MOST


@pytest.mark.promise("N12")
def test_the_message_of_a_refusal_covers_all_refused_cells_and_says_what_is_done(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, **KEYED)
    table.change("DELETE FROM T WHERE TRUE")
    said = refused(table)
    assert said.startswith(
        f"{table.contract.id}: 6 of 6 cells are not done: the delete guard refused 6. None is "
        "committed. The first is 2026-01-05T00:00|s00: would lose "
    )
    assert said.endswith(
        "Nothing of it was written. If these rows are really gone from the source: "
        f"bqh sync {table.contract.id} --from 2026-01-05T00:00 --to 2026-01-05T03:00 "
        "--allow-deletes"
    )
    table.change(
        "INSERT INTO T (number, ts, name) SELECT n, TIMESTAMP_ADD(TIMESTAMP '2026-01-05',"
        " INTERVAL n SECOND), CONCAT('name ', CAST(n AS STRING))"
        " FROM UNNEST(GENERATE_ARRAY(3600, 10799, 60)) AS n"
    )
    said = refused(table)
    assert (
        "2 of 6 cells are not done: the delete guard refused 2. The other 4 are committed." in said
    )
    assert "--from 2026-01-05T00:00 --to 2026-01-05T01:00 --allow-deletes" in said
    assert f"Next: bqh sync {table.contract.id}" not in said
    report = table.run(DAY, ONE, allow_deletes=True)
    assert total(report, "deleted") == 60
    assert table.held == table.wanted


def test_rows_older_than_the_declared_retention_may_go(sync: Sync, tables: SmallTables) -> None:
    """The boundary lies in the middle of the second hour: what is older is no loss."""
    boundary = DAY + timedelta(minutes=90)
    older_than = datetime.now(UTC) - boundary
    seconds = int(older_than.total_seconds())
    table = made(sync, tables, slices=1, deletes_older_than=f"{seconds}s", **KEYED)
    table.change("DELETE FROM T WHERE number < 5400")
    assert total(table.run(), "deleted") == 90
    assert table.held == table.wanted
    table.change("DELETE FROM T WHERE number < 5400 + 600")  # what went before is not counted
    assert total(table.run(), "deleted") == MOST
    table.change("DELETE FROM T WHERE number < 7200")
    assert "would lose 20 of the 20 rows" in refused(table)


def test_a_refusal_for_what_others_took_out_is_asked_for_again_when_that_is_forgotten(
    sync: Sync, tables: SmallTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(sync, tables, step=360, slices=1, **KEYED)
    ledger = sync.stores.ledger
    table.change("DELETE FROM T WHERE number < 3600")
    assert total(table.run(), "deleted") == MOST
    purged = ledger.now()
    table.change("DELETE FROM T WHERE number = 3600")
    with pytest.raises(TurnFailed, match=r"would be 11 of 20.*are forgotten at"):
        table.run(ONE, TWO)

    def reasons(later: timedelta) -> list[str]:
        stands = standing(ledger, table.contract, DAY, purged + later)
        return [each.reason for each in stands.due if each.cell.window.start < THREE]

    assert reasons(timedelta(hours=23)) == [Reason.REFUSED]
    assert reasons(timedelta(hours=24)) == [Reason.FORGOTTEN]
    stands = standing(ledger, table.contract, DAY, purged + timedelta(hours=24))
    due = [each for each in stands.due if each.cell.window.start < THREE]
    [asked] = asks(due, stands.phase, Window(stands.until - HOUR, stands.until))
    assert (asked.reasons, [cell.window.start for cell in asked.cells]) == ("forgotten", [ONE])
    monkeypatch.setattr(reconcile, "REMEMBERED", timedelta(0))  # as if that time had come
    assert total(table.run(ONE, TWO), "deleted") == 1
    assert table.held == table.wanted


def test_rows_past_their_retention_make_no_loss_of_younger_ones_small(
    sync: Sync, tables: SmallTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hours of three have expired, and everything is deleted by accident.

    No cell loses much by itself, and the young rows are a third of all that Harper holds.
    """
    monkeypatch.setattr(delete_guard, "MOST_UNGUARDED_ROWS", 40)
    seconds = int((datetime.now(UTC) - TWO).total_seconds())
    table = made(sync, tables, slices=4, deletes_older_than=f"{seconds}s", **KEYED)
    table.change("DELETE FROM T WHERE TRUE")
    said = refused(table)
    assert "4 of 12 cells are not done: the delete guard refused 4" in said
    lost = re.search(r"the run would lose (\d+) of the (\d+) rows", said)
    assert lost, said
    assert lost[1] == lost[2]
    # The boundary moves on while the test runs, and takes a row or two with it.
    assert 50 < int(lost[1]) <= len(table.held) == 60


def test_rows_that_cannot_be_stored_take_the_place_of_no_others(
    sync: Sync, tables: SmallTables
) -> None:
    """A table without a key: every row changes, so it goes under one id and comes under another."""
    columns = ROWS.replace(" AS name", " AS name, CAST(n AS FLOAT64) AS size")
    source = tables.make_from(columns.format(last=3_599, step=60))
    table = Table(sync=sync, tables=tables, source=source, contract=sync.contract(source, slices=1))
    table.run(DAY, ONE)
    before = table.held
    assert len(before) == 60
    table.change("UPDATE T SET size = CAST('NaN' AS FLOAT64) WHERE TRUE")
    with pytest.raises(
        TurnFailed, match="60 of its new rows cannot be stored, so none was deleted"
    ):
        table.run(DAY, ONE)
    assert table.held == before
    report = table.run(DAY, ONE, allow_deletes=True)
    assert (total(report, "deleted"), total(report, "quarantined")) == (60, 60)


def test_nothing_is_deleted_where_new_rows_could_not_be_written(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, last=3_599, slices=1)
    before = table.held
    table.change("UPDATE T SET name = 'another' WHERE number < 600")
    with FaultProxy(sync.stores.harper.url) as proxy:
        proxy.on(Answer(403), operation="upsert", table=table.contract.target.table, times=99)
        spoilt = sync.stores.harper.model_copy(update={"url": proxy.url})
        broken = replace(sync, stores=replace(sync.stores, harper=spoilt))
        with pytest.raises(TurnFailed, match="were not all written, so none was deleted"):
            replace(table, sync=broken).run(DAY, ONE)
        assert proxy.seen(operation="delete", table=table.contract.target.table) == []
    assert table.held == before
    assert total(table.run(DAY, ONE), "deleted") == 10
    assert table.held == table.wanted
