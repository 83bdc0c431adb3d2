"""What runs took out of the target lately, or were about to, as the delete guard asks for it."""

from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import SecretStr
from sqlalchemy import insert, select, text

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.questions import losses
from bq_harper_assets.ledger.records import Batch, CellResult, Intent, LedgerRoute
from bq_harper_assets.ledger.store.columns import duration_micros
from bq_harper_assets.ledger.store.database import Database
from bq_harper_assets.ledger.store.tables import BATCHES
from bq_harper_assets_tests.ledger.sample import (
    HOUR,
    TTL,
    T,
    cell,
    copy,
    result,
)

DAY = timedelta(days=1)


def commit(
    ledger: Ledger, table: LedgerRoute, hour: int, done: CellResult, *, allowed: bool = False
) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    (batch,) = ledger.plan(leases, T, 1, [copy(cell(hour))], "run")
    ledger.commit_cells(leases, [(batch, done)], deletes_allowed=allowed)
    ledger.release(leases)


def planned_batch(
    ledger: Ledger, table: LedgerRoute, hour: int, rows: int, held: int, *, allowed: bool = False
) -> Batch:
    """By a run that has gone no further, and whose lease has ended."""
    leases = ledger.acquire(table, [0], "ann", TTL)
    (batch,) = ledger.plan(leases, T, 1, [copy(cell(hour))], "run")
    ledger.intend_deletes(leases, [Intent(batch, rows, held)], allowed=allowed)
    ledger.release(leases)
    return batch


def lost_rows(
    ledger: Ledger, table: LedgerRoute, *besides: Batch
) -> dict[int, tuple[int, int, int, bool]]:
    """By hour: lost of those that it held, how many it holds, and whether all is committed."""
    return {
        (each.cell.window_start - cell(0).window_start) // HOUR: (
            *(each.lost, each.held, each.rows),
            each.is_committed,
        )
        for each in ledger.recent_losses(table, DAY, besides)
    }


EMPTIED = replace(result(0), deleted=9, held=9)
ALL = (9, 9, 0, True)


def test_rows_that_went_are_counted_by_cell_with_what_it_held(
    ledger: Ledger, table: LedgerRoute
) -> None:
    before = ledger.now()
    for hour in range(4):
        commit(ledger, table, hour, result(9))
    assert lost_rows(ledger, table) == {}
    commit(ledger, table, 0, EMPTIED)
    commit(ledger, table, 1, replace(result(5), flagged=4, held=9))
    commit(ledger, table, 2, replace(result(9), held=9))
    assert lost_rows(ledger, table) == {0: ALL, 1: (4, 9, 5, True)}
    commit(ledger, table, 1, replace(result(2), deleted=3, held=5))
    assert lost_rows(ledger, table) == {0: ALL, 1: (7, 9, 2, True)}
    first = ledger.recent_losses(table, DAY)[0]
    assert first.cell == cell(0)
    assert before <= first.since <= ledger.now()


@pytest.mark.parametrize("kept", [{"kept": 9}, {"moved": 9}])
def test_rows_that_are_kept_or_live_on_elsewhere_are_not_lost(
    ledger: Ledger, table: LedgerRoute, kept: dict[str, int]
) -> None:
    commit(ledger, table, 0, result(9))
    commit(ledger, table, 0, replace(result(0), held=9, **kept))
    assert lost_rows(ledger, table) == {}


def test_rows_that_others_took_the_place_of_or_that_are_back_are_held(
    ledger: Ledger, table: LedgerRoute
) -> None:
    for _ in range(3):  # rows without a key that change go, and come under other ids
        commit(ledger, table, 0, replace(result(9), deleted=9, held=9))
    commit(ledger, table, 1, EMPTIED)
    assert lost_rows(ledger, table) == {0: (27, 9, 9, True), 1: ALL}
    commit(ledger, table, 1, result(7))
    assert lost_rows(ledger, table) == {0: (27, 9, 9, True), 1: (9, 9, 7, True)}


def test_what_was_allowed_is_not_counted_nor_what_was_lost_before_it(
    ledger: Ledger, table: LedgerRoute
) -> None:
    commit(ledger, table, 0, EMPTIED)
    commit(ledger, table, 1, EMPTIED, allowed=True)
    assert lost_rows(ledger, table) == {}
    commit(ledger, table, 2, EMPTIED)
    assert lost_rows(ledger, table) == {2: ALL}
    commit(ledger, table, 3, result(9), allowed=True)  # it took nothing out
    assert lost_rows(ledger, table) == {2: ALL}


def test_losses_are_forgotten_after_a_while_and_are_those_of_one_table(
    ledger: Ledger, ledger_url: str, table: LedgerRoute
) -> None:
    other = ledger.register_route(replace(table.facts, name="calls", target="Calls"))
    ledger.record_schema(other, {"columns": ["ts"]}, 0)
    commit(ledger, table, 0, EMPTIED)
    commit(ledger, other, 1, EMPTIED)
    left = planned_batch(ledger, table, 2, 4, 9)
    ended = (4, 9, 5, False)
    assert (lost_rows(ledger, table), lost_rows(ledger, other)) == ({0: ALL, 2: ended}, {1: ALL})
    _shift(ledger_url, table, "ended_at")
    assert (lost_rows(ledger, table), lost_rows(ledger, other)) == ({2: ended}, {1: ALL})
    _shift(ledger_url, table, "planned_at")
    assert lost_rows(ledger, table) == {}
    ledger.fail_batch(left, "gone away")  # it may have deleted until now
    assert lost_rows(ledger, table) == {2: ended}


def test_a_tables_whole_history_is_not_read(
    ledger: Ledger, ledger_url: str, table: LedgerRoute
) -> None:
    commit(ledger, table, 0, EMPTIED)
    database = Database(SecretStr(ledger_url))
    with database.writing() as connection:
        one = dict(connection.execute(select(BATCHES)).mappings().one())
        others = [{**one, "seq": 2 + n, "rows_deleted": 0} for n in range(3_000)]
        connection.execute(insert(BATCHES), others)
        connection.execute(text("ANALYZE"))
        query = losses.recent_losses(table, T).compile(
            connection, compile_kwargs={"literal_binds": True}
        )
        explain = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
        plan = "\n".join(str(row) for row in connection.execute(text(f"{explain} {query}")))
    database.close()
    assert plan.count("batches_that_lost") == 2, plan


def _shift(ledger_url: str, table: LedgerRoute, column: str, by: timedelta = DAY) -> None:
    """So much back."""
    database = Database(SecretStr(ledger_url))
    with database.writing() as connection:
        earlier = text(f"UPDATE batches SET {column} = {column} - :us WHERE route_id = :table")
        connection.execute(earlier, {"us": duration_micros(by), "table": table.id})
    database.close()


def test_a_commit_says_what_was_really_taken_out(ledger: Ledger, table: LedgerRoute) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    (batch,) = ledger.plan(leases, T, 1, [copy(cell(0))], "run")
    ledger.intend_deletes(leases, [Intent(batch, 4, 9)], allowed=False)
    (planned,) = ledger.history(table)
    assert (planned.deletes_intended, planned.rows_held, planned.deletes_allowed) == (4, 9, False)
    done = replace(result(6), flagged=3, held=9)
    ledger.commit_cells(leases, [(batch, done)], deletes_allowed=False)
    assert lost_rows(ledger, table) == {0: (3, 9, 6, True)}


def test_a_run_does_not_count_its_own_batches(ledger: Ledger, table: LedgerRoute) -> None:
    planned_batch(ledger, table, 0, 4, 9)
    leases = ledger.acquire(table, [0, 1], "bob", TTL)
    wanted = [copy(cell(1)), copy(cell(2)), copy(cell(3, slice=1))]
    own = ledger.plan(leases, T, 1, wanted, "run")
    ledger.intend_deletes(leases, [Intent(each, 9, 9) for each in own], allowed=False)
    ledger.release(leases)
    planned_batch(ledger, table, 4, 5, 9)
    assert lost_rows(ledger, table, *own) == {0: (4, 9, 5, False), 4: (5, 9, 4, False)}
    (noted, *_) = ledger.audit(table, kind="delete")[1:]
    assert (noted.subject, noted.outcome) == ("27 rows of 3 cells", "intended")


def test_what_a_batch_said_to_be_no_loss_is_none_once_it_is_committed(
    ledger: Ledger, table: LedgerRoute
) -> None:
    """Rows that it replaces by as many, or that are older than the declared retention."""
    for hour, intended in enumerate((0, 4, 9)):
        leases = ledger.acquire(table, [0], "ann", TTL)
        (batch,) = ledger.plan(leases, T, 1, [copy(cell(hour))], "run")
        ledger.intend_deletes(leases, [Intent(batch, intended, 9)], allowed=False)
        ledger.commit_cells(leases, [(batch, EMPTIED)])
        ledger.release(leases)
    assert lost_rows(ledger, table) == {1: (4, 9, 0, True), 2: ALL}


def test_what_was_lost_between_two_allowed_losses_is_not_counted(
    ledger: Ledger, table: LedgerRoute
) -> None:
    for hour, allowed in enumerate((True, False, True, False)):
        commit(ledger, table, hour, EMPTIED, allowed=allowed)
    assert lost_rows(ledger, table) == {3: ALL}


def test_a_loss_counts_to_the_very_end_of_the_period(
    ledger: Ledger, table: LedgerRoute, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(ledger, table, 0, EMPTIED)
    planned_batch(ledger, table, 1, 4, 9)
    planned, ended = ledger.history(table)
    assert ended.ended_at is not None
    for hour, moment in ((0, ended.ended_at), (1, planned.planned_at)):
        for late, is_counted in ((timedelta(0), True), (timedelta(microseconds=1), False)):
            now = moment + DAY + late
            monkeypatch.setattr(losses, "database_now", lambda _, now=now: now)
            assert (hour in lost_rows(ledger, table)) is is_counted


def test_a_loss_is_remembered_from_its_first_to_its_last_row(
    ledger: Ledger, ledger_url: str, table: LedgerRoute
) -> None:
    commit(ledger, table, 0, replace(result(5), deleted=4, held=9))
    _shift(ledger_url, table, "ended_at", HOUR)
    commit(ledger, table, 0, replace(result(1), deleted=4, held=5))
    newest, first = ledger.history(table)
    [found] = ledger.recent_losses(table, DAY)
    assert (found.since, found.until) == (first.ended_at, newest.ended_at)
    assert found.until - found.since >= HOUR
