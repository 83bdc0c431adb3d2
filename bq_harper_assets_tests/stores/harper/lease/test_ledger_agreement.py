"""What is no alarm, and what runs that were cut off leave behind so that an alarm is raised."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from bq_harper_assets.stores.harper.answers import Attribute
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.lease import ledger_agreement
from bq_harper_assets.stores.harper.lease.ledger_agreement import require_in_step
from bq_harper_assets.stores.harper.mirror.tables import MIRRORED_LEASES
from bq_harper_assets.stores.harper.types import HarperType
from bq_harper_assets.sync.lease.keeper import Keeper
from bq_harper_assets.sync.turn.turn import Turn
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import DAY, KEYED, ONE, ROWS, TWO, Table, made
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.pair import CHANGES, STEP, Pair

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


@pytest.fixture
def pair(sync: Sync, tables: SmallTables, tmp_path: Path) -> Iterator[Pair]:
    with ExitStack() as opened:
        yield Pair(made(sync, tables, step=STEP, **KEYED), tmp_path, opened)


class Died(Exception):
    """In the place of kill -9."""


def _dies(self: Turn, *args: Any) -> None:
    raise Died


def _ends_no_lease(self: Keeper, *exc: Any) -> None:
    self._ended.set()


@pytest.mark.parametrize("end", ["killed", "failed", "left to expire"])
def test_a_harper_restored_after_a_run_that_did_not_end_well_is_noticed(
    pair: Pair, end: str
) -> None:
    before, rows = pair.mirror(), pair.table.sync.rows(pair.table.contract)
    pair.table.change(CHANGES[0])
    with pytest.MonkeyPatch.context() as patch:
        if end == "left to expire":  # as with spark.speculation, whatever was answered
            patch.setattr(Turn, "_all_answered", lambda *args: False)
        else:
            patch.setattr(Turn, "_commit", _dies)
        if end == "killed":
            patch.setattr(Keeper, "__exit__", _ends_no_lease)
        with suppress(Died):
            pair.table.run()
    assert pair.table.held == pair.table.wanted
    pair.restore_harper(before, rows)
    pair.refused("is older than the ledger")


def test_a_run_that_is_killed_between_its_commit_and_the_mirror_is_no_alarm(pair: Pair) -> None:
    pair.table.change(CHANGES[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Keeper, "__exit__", _ends_no_lease)
        pair.table.run()
    known = pair.ledger.find_route(pair.table.contract.id)
    assert known is not None
    require_in_step(pair.ledger, pair.table.sync.harper, known, adopted=False)


def test_leases_of_an_earlier_release_are_taken_through_a_whole_run(pair: Pair) -> None:
    harper, older = pair.table.sync.harper, pair.mirror()
    harper.delete(MIRRORED_LEASES.name, [row["id"] for row in older])
    for row in older:
        del row["batch"]
    harper.upsert(MIRRORED_LEASES.name, older)
    engine = create_engine(f"sqlite:///{pair.folder / 'ledger.db'}")
    with engine.begin() as connection:  # it did not note what it left there either
        connection.execute(text("UPDATE leases SET mirrored_epoch = NULL, mirrored_batch = NULL"))
    engine.dispose()
    assert {row.get("batch") for row in pair.mirror()} == {None}
    pair.table.run()
    assert {row["batch"] for row in pair.mirror()} == {12}
    assert pair.table.held == pair.table.wanted


def _nothing_that_can_be_stored(sync: Sync, tables: SmallTables) -> Table:
    rows = ROWS.format(last=3_599, step=STEP).replace(
        "CONCAT", "CAST('nan' AS FLOAT64) AS x, CONCAT"
    )
    source = tables.make_from(rows)
    return Table(sync=sync, tables=tables, source=source, contract=sync.contract(source, **KEYED))


def _nothing_at_all(sync: Sync, tables: SmallTables) -> Table:
    source = tables.make_from(f"{ROWS.format(last=3_599, step=STEP)} WHERE FALSE")
    return Table(sync=sync, tables=tables, source=source, contract=sync.contract(source, **KEYED))


def _all_gone_and_kept(sync: Sync, tables: SmallTables) -> Table:
    table = made(sync, tables, step=STEP, **KEYED, deletes="keep")
    table.change("DELETE FROM T WHERE TRUE")
    return table


def _filled_by_others(sync: Sync, tables: SmallTables) -> Table:
    source = tables.make_from(ROWS.format(last=3_599, step=STEP))
    table = Table(
        sync=sync,
        tables=tables,
        source=source,
        contract=sync.contract(source, **KEYED, manage="adopt"),
    )
    types = {"id": HarperType.LONG, "number": HarperType.LONG, "ts": HarperType.STRING}
    declared = [
        Attribute(name=name, type=type_, indexed=name == "ts") for name, type_ in types.items()
    ]
    target = table.contract.target.table
    sync.harper.create_table(target, "id", declared)
    sync.harper.upsert(target, [{"id": 1, "number": 1, "ts": "2026-01-05T00:00:01.000000Z"}])
    return table


@pytest.mark.parametrize(
    "make",
    [_nothing_that_can_be_stored, _nothing_at_all, _all_gone_and_kept, _filled_by_others],
)
def test_tables_whose_rows_are_not_those_of_their_cells_are_in_step(
    sync: Sync, tables: SmallTables, make: Callable[[Sync, SmallTables], Table]
) -> None:
    table = make(sync, tables)
    for _ in range(2):
        table.run(DAY, ONE, allow_deletes=True)


def uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Harper's count is an estimate, and may be none of rows that are there."""
    describe = HarperClient.describe_table

    def estimated(self: HarperClient, table: str, **named: Any) -> Any:
        found = describe(self, table, **named)
        return found and replace(found, record_count=0, is_count_exact=False)

    monkeypatch.setattr(HarperClient, "describe_table", estimated)


def test_rows_that_harpers_estimate_does_not_count_are_seen(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.table.sync.harper.delete(MIRRORED_LEASES.name, [row["id"] for row in pair.mirror()])
    pair.use("new.db")
    uncounted(monkeypatch)
    target = pair.table.contract.target.table
    pair.refused(f"table {target} holds rows that this ledger knows nothing of")


def _meanwhile(
    patch: pytest.MonkeyPatch, owner: Any, name: str, other: list[Callable[[], object]]
) -> None:
    """Another run from its begin to its end, once Harper has answered and nobody has looked."""
    asked = getattr(owner, name)

    def answered(*args: Any, **named: Any) -> Any:
        found = asked(*args, **named)
        if other:
            other.pop()()
        return found

    patch.setattr(owner, name, answered)


def test_runs_side_by_side_are_in_step_all_the_time(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy is looked at between the ledger's looks: a run that begins meanwhile is no alarm."""
    other: list[Callable[[], object]] = [pair.table.run]
    _meanwhile(monkeypatch, ledger_agreement, "copies_of", other)
    pair.table.run()
    assert other == []


@pytest.mark.parametrize("asked", ["describe_table", "search_by_value"])
def test_a_first_run_of_another_slice_meanwhile_is_no_alarm(
    sync: Sync, tables: SmallTables, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    """It makes the table, or its first rows, after this one has asked for them."""
    source = tables.make_from(ROWS.format(last=3_599, step=STEP))
    table = Table(sync=sync, tables=tables, source=source, contract=sync.contract(source, **KEYED))
    if asked == "search_by_value":
        table.run(ONE, TWO)  # of no row: now there is a table
    cells = sync.cells(table.contract, DAY, ONE)
    other: list[Callable[[], object]] = [lambda: sync.run(table.contract, cells[1:])]
    _meanwhile(monkeypatch, HarperClient, asked, other)
    sync.run(table.contract, cells[:1])
    assert other == []
    assert table.held == table.wanted
