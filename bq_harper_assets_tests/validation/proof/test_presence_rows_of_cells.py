"""Where each row of a table is counted: in a cell, lost, or outside of all cells."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.activity import now_doing
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.sync.cells.slicing import KEYLESS_LENGTH
from bq_harper_assets.sync.errors import RunStopped
from bq_harper_assets.sync.stop_request import Stop
from bq_harper_assets.validation.proof import presence_rows
from bq_harper_assets.validation.proof.presence_rows import Counted, PresenceLook, Some
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.stores.memory_harper import Asked, MemoryHarper, client_of, harper_with
from bq_harper_assets_tests.validation.committed import (
    DAY,
    MINUTE,
    at,
    begun,
    committed,
    registered,
    ships,
)

HASH = "0" * 13


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(empty_ledger(tmp_path / "ledger.db")) as opened:
        yield opened


def holding(*rows: tuple[int, Any]) -> MemoryHarper:
    """Harper with rows of these ids and times, in minutes unless they are something else."""
    timed = [
        {"id": n, "event_time": at(time) if isinstance(time, int | float) else time}
        for n, time in rows
    ]
    return harper_with({"Orders": timed})


@contextmanager
def looking(
    harper: MemoryHarper, ledger: Ledger, contract: TableContract, **more: Any
) -> Iterator[PresenceLook]:
    with client_of(harper) as client:
        yield PresenceLook(
            harper=client,
            ledger=ledger,
            table=registered(ledger, contract),
            contract=contract,
            primary_key="id",
            kind=Kind.TIMESTAMP,
            **({"keyed": True} | more),
        )


def counted(harper: MemoryHarper, ledger: Ledger, contract: TableContract, **more: Any) -> Counted:
    with looking(harper, ledger, contract, **more) as look:
        return look.counted()


def test_rows_are_counted_by_where_their_times_are(ledger: Ledger) -> None:
    known = ships()
    committed(ledger, known, 0, 10, rows=3)
    committed(ledger, known, 20, 25)
    leases, _ = begun(ledger, known, 25, 30)
    ledger.release(leases)
    harper = holding(
        (1, -1), (2, 0), (3, 4.5), (4, 5), (5, 9.5), (6, 10), (7, 20), (8, 25), (9, 30), (10, None)
    )
    found = counted(harper, ledger, known)
    assert found == Counted(
        held=10,
        in_cells=5,
        before=1,
        waiting=1,
        younger=1,
        stray=Some(1, (6,)),
        timeless=Some(1, (10,)),
    )


def test_a_row_that_its_window_does_not_find_is_lost_in_each_page(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence_rows, "ROWS_PER_PAGE", 3)
    known = ships()
    committed(ledger, known, 0, 10)
    harper = holding(*((n, n) for n in range(7)))
    said: set[str] = set()

    def listen(asked: Asked) -> None:
        if step := now_doing():
            said.add(step.what)

    harper.refuses = listen
    harper.tables["Orders"].unfindable = {1, 2, 6}
    found = counted(harper, ledger, known)
    assert (found.held, found.in_cells, found.lost) == (7, 7, Some(3, (1, 2, 6)))
    assert found.unjudged == found.kept == 0
    counting = "counting the rows of Orders in the order of ids"
    told = {counting, f"{counting}, 3 so far", f"{counting}, 6 so far"}
    assert said == {*told, "looking for the rows of Orders in their windows"}


def test_no_more_than_some_are_named_and_all_are_counted(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence_rows, "NAMED", 2)
    known = ships()
    committed(ledger, known, 0, 5)
    harper = holding(*((n, 1) for n in range(4)), *((n, None) for n in range(4, 8)))
    harper.tables["Orders"].unfindable = {0, 1, 2, 3}
    found = counted(harper, ledger, known)
    assert (found.lost, found.timeless) == (Some(4, (0, 1)), Some(4, (4, 5)))


def test_a_lost_row_that_is_gone_when_it_is_looked_for_again_is_not_counted(ledger: Ledger) -> None:
    known = ships()
    committed(ledger, known, 0, 5)
    harper = holding((1, 1), (2, 2))
    harper.tables["Orders"].unfindable = {1, 2}

    def delete(asked: Asked) -> None:
        if asked["operation"] == "search_by_conditions":
            harper.tables["Orders"].rows.pop(1, None)

    harper.refuses = delete
    assert counted(harper, ledger, known).lost == Some(1, (2,))


def test_rows_of_an_open_window_are_counted_up_to_where_it_is_synced(ledger: Ledger) -> None:
    known = ships()
    committed(ledger, known, 0, 5, upto=DAY + 3 * MINUTE)
    found = counted(holding((1, 2.9), (2, 3), (3, 4)), ledger, known)
    assert (found.in_cells, found.beyond, found.lost.count) == (1, 2, 0)


def test_rows_of_cells_that_a_run_writes_meanwhile_are_not_judged(ledger: Ledger) -> None:
    known = ships()
    committed(ledger, known, 0, 10)
    harper = holding((1, 1), (2, 6), (3, 7))
    harper.tables["Orders"].unfindable = {1, 3}
    runs: list[Any] = []

    def plan(asked: Asked) -> None:
        if not runs:
            runs.append(begun(ledger, known, 5, 10))

    harper.refuses = plan
    with looking(harper, ledger, known) as look:
        found = look.counted()
        assert (found.in_cells, found.unjudged, found.lost) == (3, 2, Some(1, (1,)))
        # It is the same from the beginning on: a plan may be under way before the look.
        assert look.counted() == found


@pytest.mark.parametrize(("deletes", "kept"), [("mirror", 0), ("keep", 2)])
def test_rows_beyond_those_of_a_commit_are_kept_ones_if_the_contract_keeps_them(
    deletes: str, kept: int, ledger: Ledger
) -> None:
    known = ships(deletes=deletes)
    committed(ledger, known, 0, 5, rows=2)
    committed(ledger, known, 5, 10, rows=3)
    harper = holding((1, 1), (2, 2), (3, 3), (4, 4), (5, 5))
    assert counted(harper, ledger, known).kept == kept


def test_each_slice_has_cells_of_its_own(ledger: Ledger) -> None:
    known = ships(slices=2)
    committed(ledger, known, 0, 5, slices=[0])
    committed(ledger, known, 5, 10, slices=[0, 1])
    committed(ledger, known, 10, 15, slices=[0])
    rows = (13, 1), (14, 1), (1, 11), (2, 16)  # of the slices 0, 1, 1 and 1
    found = counted(holding(*rows), ledger, known)
    assert (found.in_cells, found.stray) == (1, Some(2, (1, 14)))
    assert found.younger == 1


@pytest.mark.parametrize(("keyed", "count"), [(True, 6), (False, 9)])
def test_equal_rows_without_a_key_are_in_one_slice_and_others_where_their_id_is(
    keyed: bool, count: int, ledger: Ledger
) -> None:
    known = ships(slices=2)
    committed(ledger, known, 0, 5, slices=[1])
    ids = [f"{'1' * KEYLESS_LENGTH}-{n}" for n in range(9)]  # a hash, and a number among equals
    harper = harper_with({"Orders": [{"id": each, "event_time": at(1)} for each in ids]})
    harper.tables["Orders"].unfindable = {ids[7]}
    found = counted(harper, ledger, known, keyed=keyed)
    assert (found.in_cells, found.stray.count) == (count, 9 - count)
    assert found.lost == Some(1, (ids[7],))


def test_a_declared_start_says_from_where_on_windows_are_wanted(ledger: Ledger) -> None:
    committed(ledger, ships(), 0, 5)
    committed(ledger, ships(), 20, 25)
    harper = holding((1, 7), (2, 12), (3, 17))
    later = ships(sync={"start_timestamp": DAY + 13 * MINUTE})
    found = counted(harper, ledger, later)
    assert (found.before, found.stray) == (1, Some(2, (2, 3)))
    much_later = ships(sync={"start_timestamp": DAY + 60 * MINUTE})
    found = counted(holding((1, 7), (2, 30), (3, 61)), ledger, much_later)
    assert (found.before, found.younger, found.stray.count) == (2, 1, 0)
    undeclared = ships(sync={})
    ledger.record_start(undeclared.id, DAY + 17 * MINUTE)
    found = counted(harper, ledger, undeclared)
    assert (found.before, found.stray) == (2, Some(1, (3,)))


def test_a_time_in_another_form_is_not_lost_in_an_adopted_table_unless_a_sync_wrote_it(
    ledger: Ledger,
) -> None:
    known = ships(manage="adopt")
    committed(ledger, known, 0, 5)
    other = "2026-01-05 00:03:00Z"
    harper = holding((1, other), (2, 1), (3, "garbage"))
    harper.tables["Orders"].attributes = [{"attribute": "id"}]
    found = counted(harper, ledger, known)
    assert (found.other_form, found.in_cells, found.lost.count) == (1, 1, 0)
    assert found.timeless == Some(1, (3,))
    assert "_hash" not in harper.asked[-1].get("get_attributes", ())
    harper.tables["Orders"].attributes = [{"attribute": "id"}, {"attribute": "_hash"}]
    harper.rows("Orders")[0]["_hash"] = HASH
    found = counted(harper, ledger, known)
    assert (found.other_form, found.in_cells, found.lost) == (0, 2, Some(1, (1,)))
    assert found.timeless == Some(1, (3,))


def test_a_table_without_a_committed_cell_has_no_rows_in_cells(ledger: Ledger) -> None:
    known = ships()
    leases, _ = begun(ledger, known, 0, 5)
    ledger.release(leases)
    found = counted(holding((1, 1), (2, 7)), ledger, known)
    assert found == Counted(held=2, waiting=1, younger=1)
    assert counted(holding(), ledger, known) == Counted()


@pytest.mark.parametrize("rows", [0, 3])
def test_a_look_ends_between_two_requests(
    rows: int, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence_rows, "ROWS_PER_PAGE", 1)
    known = ships()
    committed(ledger, known, 0, 5)
    stop = Stop()
    harper = holding(*((n, n) for n in range(rows)))
    stop.ask()
    with looking(harper, ledger, known, stop=stop) as look, pytest.raises(RunStopped):
        look.counted()
    assert len(harper.asked) == 1
