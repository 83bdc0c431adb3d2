"""The engine moves cells into a target of another kind: one that takes a turn at once.

Each test runs twice: with cells that are cut by time, and the same rows in cells cut by key.

Nothing of it ships. It shows that the engine leans on sync/protocols.py alone, and what it does
with a transactional target: no copies of leases, and a batch is taken whole or not at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.errors import TableChanged
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.questions.status import CellRecord
from bq_harper_assets.ledger.records import BatchState, CellState, LedgerRoute
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.cut import TimeCut
from bq_harper_assets.sync.cells.key_range import KeyCut, KeyOrder
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets.sync.errors import TargetMoved, TurnFailed
from bq_harper_assets.sync.lease.keeper import Keeper, LeaseTimes
from bq_harper_assets.sync.ledger_facts import cell_key, recorded_cells, recorded_cut
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets.sync.turn.turn import Turn
from bq_harper_assets.validation.proof.cell_proof import CellProof
from bq_harper_assets.validation.proof.prover import Prover
from bq_harper_assets.validation.verdict import ProofStatus
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import DAY, HOUR, ROWS, THREE
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.sql_target import (
    UNWANTED,
    BigQueryToSql,
    SqlTransaction,
    connected,
)

pytestmark = [pytest.mark.bigquery, pytest.mark.spark]
BOUNDS = ("3600", "7200")  # of the numbers of an hour's rows
SHORT = LeaseTimes(timedelta(seconds=20), timedelta(seconds=1), patience=timedelta(seconds=60))


class Died(Exception):
    """The process is gone."""


@dataclass(frozen=True, kw_only=True)
class SecondRoute:
    """A source in the emulator, a SQLite file, and the turns between them."""

    sync: Sync
    tables: SmallTables
    source: TableRef
    route: BigQueryToSql

    @property
    def contract(self) -> TableContract:
        return self.route.contract

    def change(self, statement: str) -> None:
        """With T for the table's name."""
        self.tables.run(statement.replace(" T ", f" {self.source.sql} "))

    def run(self, cells: Sequence[Cell] | None = None, **settings: Any) -> TurnReport:
        """A turn of all cells, or of some."""
        return Turn(
            route=self.route,
            spark=self.sync.spark,
            run_id="second",
            retry=self.sync.retry,
            times=SHORT,
            **settings,
        ).sync(cells or self.cells)

    @property
    def cells(self) -> list[Cell]:
        """Of the three hours, or of the key ranges that have the same rows."""
        cut = self.route.cut
        hours = windows_between(DAY, THREE, self.contract.window)
        ranges = cut.ranges if isinstance(cut, KeyCut) else tuple(hours)
        return [Cell(each, number) for each in ranges for number in range(self.contract.slices)]

    def proofs(self, **settings: Any) -> set[ProofStatus]:
        """What the proof of every cell says."""
        return {proof.status for proof in self.proved(**settings)}

    def proved(self, **settings: Any) -> list[CellProof]:
        """The proof of every cell."""
        prover = Prover(self.route, self.sync.spark, self.sync.retry)
        return prover.prove(self.cells, **settings)

    @property
    def held(self) -> dict[int, str]:
        """Name by number, as the file has them."""
        asked = "SELECT body ->> 'number', body ->> 'name' FROM held"
        with connected(self.route.file) as sql:
            return {int(number): name for number, name in sql.execute(asked)}

    @property
    def wanted(self) -> dict[int, str]:
        """The same of the source."""
        rows = self.tables.queries.run(f"SELECT * FROM {self.source.sql}", doing="reading").rows
        return {row["number"]: row["name"] for row in rows}

    @property
    def turns(self) -> int:
        """How often the file has taken something."""
        with connected(self.route.file) as sql:
            count: int = sql.execute("SELECT COUNT(*) FROM turns").fetchone()[0]
            return count

    def batches(self, state: BatchState) -> int:
        """How many batches the ledger has in that state."""
        ledger, table = self.route.ledger, self.table
        return sum(
            each.state == state
            for cell in self.cells
            for each in ledger.history(table, cell_key(cell))
        )

    def records(self) -> list[CellRecord]:
        """What the ledger has of each cell."""
        return list(recorded_cells(self.route.ledger, self.table, self.cells).values())

    @property
    def table(self) -> LedgerRoute:
        table = self.route.ledger.find_route(self.contract.id)
        assert table is not None
        return table


@pytest.fixture(params=("time", "key"))
def second(
    request: pytest.FixtureRequest, sync: Sync, tables: SmallTables, tmp_path: Path
) -> SecondRoute:
    """Three hours of rows, in two slices, that nothing was moved of yet."""
    cut = TimeCut(HOUR) if request.param == "time" else KeyCut(BOUNDS, KeyOrder.NUMBERS)
    source = tables.make_from(ROWS.format(last=10_799, step=60))
    contract = sync.contract(source, key=("number",))
    bigquery, ledger = sync.stores.bigquery, sync.stores.ledger
    route = BigQueryToSql(bigquery, tmp_path / "target.db", ledger, contract, cut)
    return SecondRoute(sync=sync, tables=tables, source=source, route=route)


def test_cells_arrive_at_once_with_receipts_quarantine_digests_and_a_proof(
    second: SecondRoute,
) -> None:
    second.change(f"UPDATE T SET name = '{UNWANTED}' WHERE number = 60")
    report = second.run()
    assert sum(cell.result.written for cell in report.cells) == 179
    [refused] = [each for cell in report.cells for each in cell.result.rejections]
    assert (refused.row_id, refused.reason) == ("60", "not wanted here")
    assert second.held == {n: name for n, name in second.wanted.items() if n != 60}
    assert [record.state for record in second.records()] == [CellState.SYNCED] * 6
    assert second.turns == 1
    assert second.proofs() == {ProofStatus.PROVED}
    again = second.run()
    assert sum(cell.result.unchanged for cell in again.cells) == 179
    assert [a.result.digest for a in again.cells] == [b.result.digest for b in report.cells]


def test_a_change_of_three_cells_is_one_transaction(second: SecondRoute) -> None:
    second.run()
    second.change("UPDATE T SET name = 'changed' WHERE number = 120")
    second.change("DELETE FROM T WHERE number = 3660")
    second.change(
        "INSERT INTO T (number, ts, name) VALUES (9, TIMESTAMP '2026-01-05 02:30:09', 'new')"
    )
    second.change("UPDATE T SET ts = TIMESTAMP '2026-01-05 01:00:01' WHERE number = 180")
    report = second.run()
    assert sum(cell.result.written for cell in report.cells) == 3
    assert sum(cell.result.deleted for cell in report.cells) == 1
    assert second.held == second.wanted
    assert second.turns == 2
    assert second.proofs() == {ProofStatus.PROVED}


def test_a_row_whose_time_changes_moves_in_a_time_cut_and_stays_in_its_key_range(
    second: SecondRoute,
) -> None:
    second.run()
    second.change("UPDATE T SET ts = TIMESTAMP '2026-01-05 01:00:01' WHERE number = 180")
    second.change(
        "INSERT INTO T (number, ts, name) VALUES (9, TIMESTAMP '2026-01-05 00:30:09', 'new')"
    )
    by_key = isinstance(second.route.cut, KeyCut)
    some = [
        cell for cell in second.cells if cell.range.axis_start == second.cells[0].range.axis_start
    ]
    report = second.run(some)
    assert sum(cell.result.moved for cell in report.cells) == (0 if by_key else 1)
    assert sum(cell.result.written for cell in report.cells) == (2 if by_key else 1)
    marked = {record.cell for record in second.records() if record.marks}
    assert len(marked) == (0 if by_key else 1)
    assert second.held == second.wanted
    second.run()
    assert second.proofs() == {ProofStatus.PROVED}


def test_a_change_and_a_delete_in_one_range_write_nothing_in_another(second: SecondRoute) -> None:
    second.run()
    second.change("UPDATE T SET name = 'changed' WHERE number = 120")
    second.change("DELETE FROM T WHERE number = 180")
    report = second.run()
    touched = [cell for cell in report.cells if cell.result.written or cell.result.deleted]
    assert {cell.cell.range for cell in touched} == {second.cells[0].range}
    assert [sum(c.result.written for c in touched), sum(c.result.deleted for c in touched)] == [
        1,
        1,
    ]
    assert second.held == second.wanted


def test_many_rows_may_go_only_if_they_are_past_their_retention(second: SecondRoute) -> None:
    second.change(
        f"INSERT INTO T (number, ts, name) {ROWS.format(last=10_799, step=5)} WHERE MOD(n, 60) > 0"
    )
    second.run()
    second.change("DELETE FROM T WHERE number >= 3600")
    with pytest.raises(TurnFailed, match="would lose"):
        second.run()
    kept = second.contract.model_copy(update={"deletes_older_than": timedelta(days=1)})
    second = replace(second, route=replace(second.route, contract=kept))
    assert sum(cell.result.deleted for cell in second.run().cells) == 1_440
    assert second.held == second.wanted


def test_a_proof_finds_the_range_whose_rows_are_others(second: SecondRoute) -> None:
    second.run()
    with connected(second.route.file) as sql:
        sql.execute("DELETE FROM held WHERE id = '3660'")
        sql.execute("UPDATE held SET id = '7201' WHERE id = '7260'")
    for deep in (False, True):
        found = [
            proof for proof in second.proved(deep=deep) if proof.status is not ProofStatus.PROVED
        ]
        assert {proof.status for proof in found} == {ProofStatus.DIFFERS}
        assert sum(proof.missing for proof in found) == 2
        assert sum(proof.phantom for proof in found) == 1
        assert {proof.cell.range for proof in found} == {c.range for c in second.cells[2:]}


def test_a_turn_killed_between_the_targets_commit_and_the_ledgers_is_recognised_and_recorded_once(
    second: SecondRoute, monkeypatch: pytest.MonkeyPatch
) -> None:
    second.run()
    second.change("UPDATE T SET name = 'changed' WHERE number IN (120, 3720, 7320)")
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "commit_cells", _dies)
        patch.setattr(Keeper, "__exit__", _ends_no_lease)
        with pytest.raises(Died):
            second.run()
    assert second.held == second.wanted
    assert (second.turns, second.batches(BatchState.PLANNED)) == (2, 6)
    said: list[str] = []
    report = second.run(say=said.append)
    name = second.contract.id
    assert (
        f"{name}: 6 cells that an earlier run had written and not recorded are committed now"
        in said
    )
    assert sum(cell.result.written for cell in report.cells) == 0
    assert second.batches(BatchState.APPLIED) == 18  # three turns of six cells, each recorded once
    assert second.batches(BatchState.FAILED) == 0
    assert second.proofs() == {ProofStatus.PROVED}
    said.clear()
    second.run(say=said.append)
    assert not [line for line in said if "earlier run" in line]


@pytest.mark.parametrize("second", ["key"], indirect=True)
def test_a_route_keeps_the_key_ranges_that_it_was_first_cut_into(second: SecondRoute) -> None:
    second.run()
    ledger, told = second.route.ledger, second.held
    assert recorded_cut(ledger, second.table, KeyOrder.NUMBERS) == second.route.cut
    second.change("UPDATE T SET name = 'changed' WHERE number = 120")
    cut = KeyCut(("60", "7200"), KeyOrder.NUMBERS)
    other = replace(second, route=replace(second.route, cut=cut))
    with pytest.raises(TableChanged, match="was cut into 3 key ranges"):
        other.run()
    assert second.held == told
    again = recorded_cut(ledger, second.table, KeyOrder.NUMBERS)
    replace(second, route=replace(second.route, cut=again)).run()
    assert second.held == second.wanted


def test_nothing_is_taken_if_somebody_else_wrote_meanwhile(
    second: SecondRoute, monkeypatch: pytest.MonkeyPatch
) -> None:
    second.run()
    before = second.held
    second.change("UPDATE T SET name = 'changed' WHERE number = 120")
    apply = SqlTransaction.apply

    def after_another(self: SqlTransaction, turn: Any, after: Any) -> None:
        apply(self, replace(turn, batches={}), after)
        apply(self, turn, after)

    with monkeypatch.context() as patch:
        patch.setattr(SqlTransaction, "apply", after_another)
        with pytest.raises(TargetMoved, match="has taken another turn; nothing was written"):
            second.run()
    assert second.held == before
    second.run()
    assert second.held == second.wanted


def _dies(*args: Any, **named: Any) -> None:
    raise Died


def _ends_no_lease(self: Keeper, *exc: Any) -> None:
    self._ended.set()
