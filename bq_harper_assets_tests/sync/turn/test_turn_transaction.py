"""A turn and a target that takes it at once: who is ahead, what is taken, who may begin then."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.position import InstantPosition, PositionOrder
from bq_harper_assets.ledger.records import Batch, Leases, LedgerRoute
from bq_harper_assets.sync.cells.cut import TimeCut
from bq_harper_assets.sync.errors import NotAllStaged, OutOfStep, TargetAhead, TargetMoved
from bq_harper_assets.sync.lease.keeper import Keeper, LeaseTimes
from bq_harper_assets.sync.turn.turn_transaction import TurnTransaction, begin_transaction
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.ledger.sample import FACTS, HOUR, T, cell, copy, result
from bq_harper_assets_tests.schema.samples import contract
from bq_harper_assets_tests.sync.sql_target import SqlTarget, connected, make_tables

AT_T = InstantPosition(T)
SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Sets:
    """A position that names all it has, as sets of transactions do."""

    text: str
    kind: str = "set"
    rank: None = None

    def compared_with(self, text: str) -> PositionOrder:
        mine, other = set(self.text), set(text)
        if mine == other:
            return PositionOrder.EQUAL
        if mine > other:
            return PositionOrder.AFTER
        return PositionOrder.BEFORE if mine < other else PositionOrder.NOT_COMPARABLE


@dataclass(frozen=True)
class Stage:
    """A ledger with a route of four slices, and the file that its rows go to."""

    ledger: Ledger
    table: LedgerRoute
    file: Path
    given_back: list[str] = field(default_factory=list)

    @property
    def target(self) -> SqlTarget:
        return SqlTarget(contract(), TimeCut(HOUR), self.file)

    def keeper(self) -> Keeper:
        """Of all slices."""
        slices, times = range(FACTS.slices), LeaseTimes()
        return Keeper(self.ledger, None, self.table, slices, "ann", times)

    def begin(self, keeper: Keeper, say: Any = print) -> TurnTransaction:
        """As a turn does under its leases."""
        begun = begin_transaction(self.ledger, self.table, self.target, keeper, say)
        assert begun is not None
        return begun

    def plan(self, leases: Leases, hour: int = 0) -> Batch:
        """One batch."""
        return self.ledger.plan(leases, T, 1, [copy(cell(hour))], "run-1")[0]

    def take(self, begun: TurnTransaction, *batches: Batch, position: Any = AT_T) -> None:
        """Batches that write nothing."""
        done = [(batch, result(0)) for batch in batches]
        begun.take(position, "run-1", done, {}, lambda: self.given_back.append("given back"))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Nothing was moved yet."""
    file = tmp_path / "target.db"
    make_tables(file)
    with open_ledger(empty_ledger(tmp_path / "ledger.db")) as ledger:
        table = ledger.register_route(FACTS)
        ledger.record_schema(table, {"columns": ["ts"]}, 0)
        yield Stage(ledger, table, file)


def test_a_target_of_single_rows_has_no_transaction(stage: Stage) -> None:
    class OneByOne(SqlTarget):
        def transaction(self) -> None:  # type: ignore[override]
            return None

    target = OneByOne(contract(), TimeCut(HOUR), stage.file)
    with stage.keeper() as keeper:
        assert begin_transaction(stage.ledger, stage.table, target, keeper, print) is None


def test_what_was_taken_and_not_recorded_is_committed_and_told(stage: Stage) -> None:
    with stage.keeper() as keeper:
        stage.take(stage.begin(keeper), stage.plan(keeper.leases))
    said: list[str] = []
    with stage.keeper() as keeper:
        stage.begin(keeper, said.append)
        stage.begin(keeper, said.append)
    assert said == [
        "positions: 1 cells that an earlier run had written and not recorded are committed now"
    ]


def test_a_source_must_be_where_the_target_was_brought_to_or_after(stage: Stage) -> None:
    with stage.keeper() as keeper:
        stage.begin(keeper).require_not_ahead(InstantPosition(T - SECOND))  # it holds nothing yet
        stage.take(stage.begin(keeper), stage.plan(keeper.leases))
        begun = stage.begin(keeper)
    begun.require_not_ahead(AT_T)
    begun.require_not_ahead(InstantPosition(T + SECOND))
    with pytest.raises(TargetAhead, match="is only at 2026-11-16T23:59:59"):
        begun.require_not_ahead(InstantPosition(T - SECOND))
    with pytest.raises(TargetAhead, match="nobody can say which of the two is the newer"):
        begun.require_not_ahead(Sets("ab"))


def test_positions_that_cannot_be_compared_stop_the_turn(stage: Stage) -> None:
    with stage.keeper() as keeper:
        stage.take(stage.begin(keeper), stage.plan(keeper.leases), position=Sets("ab"))
        begun = stage.begin(keeper)
    begun.require_not_ahead(Sets("abc"))
    with pytest.raises(TargetAhead, match=r"is at bc \(set\), and nobody can say"):
        begun.require_not_ahead(Sets("bc"))


def test_leases_are_given_back_when_it_is_known_what_the_target_has(stage: Stage) -> None:
    with stage.keeper() as keeper:
        first, second = stage.begin(keeper), stage.begin(keeper)
        stage.take(first, stage.plan(keeper.leases))
        assert stage.given_back == ["given back"]
        batch = stage.plan(keeper.leases, hour=1)
        with pytest.raises(TargetMoved):
            stage.take(second, batch)
        assert stage.given_back == ["given back"] * 2
        with pytest.raises(NotAllStaged):
            stage.begin(keeper).take(
                AT_T, "run-1", [(batch, result(1))], {batch.seq: 1}, lambda: stage.take(first)
            )
    assert stage.given_back == ["given back"] * 2


def test_a_turn_in_which_no_cell_is_done_leaves_the_target_as_it_was(stage: Stage) -> None:
    with stage.keeper() as keeper:
        stage.take(stage.begin(keeper))
        assert stage.target.transaction().applied() is None
    assert stage.given_back == ["given back"]


def test_what_others_have_staged_is_cleared(stage: Stage) -> None:
    with connected(stage.file) as sql:
        sql.execute("INSERT INTO staged VALUES ('1', 0, '0', 1, '{}', 1)")
        sql.execute("INSERT INTO leaving VALUES ('2', 'mirror', 1, 1)")
    with stage.keeper() as keeper:
        stage.begin(keeper)
    with connected(stage.file) as sql:
        for name in ("staged", "leaving"):
            assert sql.execute(f"SELECT COUNT(*) FROM {name}").fetchone() == (0,)


def test_a_target_that_is_older_than_the_ledger_stops_the_turn(stage: Stage) -> None:
    with stage.keeper() as keeper:
        for hour in (0, 1):
            stage.take(stage.begin(keeper), stage.plan(keeper.leases, hour))
        stage.begin(keeper)
        with connected(stage.file) as sql:
            sql.execute("DELETE FROM turns WHERE number = 2")
        with pytest.raises(OutOfStep, match=r"its newest batch is 1, .* has committed batch 2"):
            stage.begin(keeper)
        with connected(stage.file) as sql:
            sql.execute("DELETE FROM turns")
        with pytest.raises(OutOfStep, match=r"its newest batch is 0, .* has committed batch 2"):
            stage.begin(keeper)


def test_a_turn_without_batches_makes_no_target_older(stage: Stage) -> None:
    with stage.keeper() as keeper:
        stage.take(stage.begin(keeper), stage.plan(keeper.leases))
        begun = stage.begin(keeper)
        assert begun.before is not None
        stage.target.transaction().apply(replace(begun.before, batches=()), begun.before, {})
        stage.begin(keeper)


def test_a_target_of_another_ledger_or_of_an_older_one_stops_the_turn(
    stage: Stage,
) -> None:
    with stage.keeper() as keeper:
        begun = stage.begin(keeper)
        batch = stage.plan(keeper.leases)
        stage.take(begun, replace(batch, t=datetime.fromisoformat("2026-01-01T00:00:00Z")))
        with pytest.raises(OutOfStep, match="as if it was restored from a backup"):
            stage.begin(keeper)
    with connected(stage.file) as sql:
        sql.execute("UPDATE turns SET ledger = 'another'")
    with stage.keeper() as keeper, pytest.raises(OutOfStep, match="is kept by the ledger another"):
        stage.begin(keeper)
