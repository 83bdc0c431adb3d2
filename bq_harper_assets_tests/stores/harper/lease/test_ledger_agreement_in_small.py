"""Every contradiction between ledger and Harper is said before anything is written."""

from typing import Any

import pytest

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import Leases, LedgerRoute
from bq_harper_assets.stores.harper.errors import HarperUnauthorized
from bq_harper_assets.stores.harper.lease.ledger_agreement import (
    MOST_SLICES,
    copies_of,
    holds_a_row,
    require_in_step,
)
from bq_harper_assets.stores.harper.mirror.tables import MIRRORED_LEASES
from bq_harper_assets.sync.errors import OutOfStep
from bq_harper_assets_tests.ledger.sample import FACTS, TTL, T, cell, commit_cell, copy, result
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper

ROW = {"id": "1", "ts": "2026-11-16T00:00:00.000000Z"}


@pytest.fixture
def table(ledger: Ledger) -> LedgerRoute:
    registered = ledger.register_route(FACTS)
    ledger.record_schema(registered, {"columns": ["ts"]}, 0)
    return registered


def committed(ledger: Ledger, table: LedgerRoute, rows: int = 10) -> Leases:
    """A batch is committed in slice 0, and noted as shown in Harper."""
    leases = ledger.acquire(table, [0, 1], "me", TTL)
    [batch] = ledger.plan(leases, T, 1, [copy(cell())], "run")
    commit_cell(ledger, leases, batch, result(rows))
    ledger.note_mirrored(leases, batch.seq)
    return leases


def show(memory: MemoryHarper, ledger: Ledger, **changes: dict[str, Any]) -> None:
    """Harper's copies as the ledger knows them, but for the changes by slice."""
    known = {"ledger": str(ledger.identity()), "epoch": 1, "batch": 1, "deadline": 5.0}
    rows = [
        {"id": f"Positions|{name}", **known, **changes.get(name, {})} for name in ("s00", "s01")
    ]
    memory.make(MIRRORED_LEASES.name, *rows)


def said(memory: MemoryHarper, ledger: Ledger, table: LedgerRoute, adopted: bool = False) -> str:
    """What is wrong; nothing if all agrees."""
    with memory.client() as client:
        try:
            require_in_step(ledger, client, table, adopted=adopted)
        except OutOfStep as error:
            return str(error)
    return ""


def test_a_synced_table_whose_copies_are_the_ledgers_is_in_step(
    memory: MemoryHarper, ledger: Ledger, table: LedgerRoute
) -> None:
    committed(ledger, table)
    memory.make("Positions", ROW)
    show(memory, ledger)
    assert said(memory, ledger, table) == ""


def test_a_table_that_neither_knows_is_in_step(
    memory: MemoryHarper, ledger: Ledger, table: LedgerRoute
) -> None:
    assert said(memory, ledger, table) == ""
    memory.make("Positions")
    assert said(memory, ledger, table) == ""


def test_a_copy_of_an_older_release_names_no_batch_and_is_not_newer(
    memory: MemoryHarper, ledger: Ledger, table: LedgerRoute
) -> None:
    ledger.acquire(table, [0, 1], "me", TTL)
    show(memory, ledger, s00={"batch": None}, s01={"batch": None})
    assert said(memory, ledger, table) == ""


def test_the_copies_of_all_slices_that_any_ledger_may_have_are_read(
    memory: MemoryHarper, ledger: Ledger, table: LedgerRoute
) -> None:
    client = memory.client()
    assert copies_of(client, table) == []  # without the table of copies
    memory.make(
        MIRRORED_LEASES.name,
        {"id": "Positions|s00", "ledger": "a", "epoch": 3, "batch": 8, "deadline": 2.5},
        {"id": "Positions|s63", "ledger": "b", "epoch": 4},
        {"id": "Others|s01", "ledger": "c", "epoch": 5},
    )
    first, last = copies_of(client, table)
    assert (first.slice, first.ledger, first.epoch, first.batch, first.deadline) == (
        0, "a", 3, 8, 2.5,
    )  # fmt: skip
    assert (last.slice, last.batch, last.deadline) == (63, None, 0.0)
    assert MOST_SLICES == 64


def test_copies_of_another_ledger_are_refused_with_both_names(
    memory: MemoryHarper, ledger: Ledger, table: LedgerRoute
) -> None:
    committed(ledger, table)
    memory.make("Positions", ROW)
    show(memory, ledger, s01={"ledger": "another"})
    told = said(memory, ledger, table)
    assert f"is kept by the ledger another, and this is the ledger {ledger.identity()}" in told
    assert "point ledger.url to it" in told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"batch": 2}, "Harper's newest batch is 2, the ledger's 1"),
        ({"epoch": 2}, "the epoch of slice 1 in Harper is 2, the ledger's 1"),
        (
            {"batch": 2, "epoch": 3},
            "batch is 2, the ledger's 1; the epoch of slice 1 in Harper is 3, the ledger's 1",
        ),
    ],
)
def test_a_ledger_that_is_older_than_harper_is_refused(
    memory: MemoryHarper, ledger: Ledger, table: LedgerRoute, change: dict[str, Any], told: str
) -> None:
    committed(ledger, table)
    memory.make("Positions", ROW)
    show(memory, ledger, s01=change)
    found = said(memory, ledger, table)
    assert "the ledger is older than Harper's table Positions, as if it was restored" in found
    assert told in found


def test_a_copy_of_a_slice_that_the_table_does_not_have_is_not_compared(
    memory: MemoryHarper, ledger: Ledger, table: LedgerRoute
) -> None:
    committed(ledger, table)
    memory.make("Positions", ROW)
    show(memory, ledger)
    copies = memory.tables[MIRRORED_LEASES.name].rows
    copies["Positions|s09"] = {**copies["Positions|s00"], "id": "Positions|s09", "epoch": 99}
    assert said(memory, ledger, table) == ""


@pytest.mark.parametrize("batch", [0, None])
def test_a_harper_that_is_older_than_the_ledger_is_refused(
    memory: MemoryHarper, ledger: Ledger, table: LedgerRoute, batch: int | None
) -> None:
    committed(ledger, table)
    memory.make("Positions", ROW)
    show(memory, ledger, s01={"batch": batch, "epoch": 0})
    told = said(memory, ledger, table)
    assert "is older than the ledger, as if it was restored from a backup" in told
    assert "newest batch is 0 (epoch 0), and the ledger has seen 1 there (epoch 1)" in told


def test_a_harper_without_a_copy_that_the_ledger_has_noted_is_refused(
    memory: MemoryHarper, ledger: Ledger, table: LedgerRoute
) -> None:
    committed(ledger, table)
    memory.make("Positions", ROW)
    told = said(memory, ledger, table)
    assert "newest batch is 0 (epoch 0), and the ledger has seen 1 there (epoch 1)" in told


def test_an_older_epoch_alone_is_a_renewal_that_took_effect_late(
    memory: MemoryHarper, ledger: Ledger, table: LedgerRoute
) -> None:
    committed(ledger, table)
    memory.make("Positions", ROW)
    show(memory, ledger, s01={"epoch": 0})
    assert said(memory, ledger, table) == ""


def test_a_missing_table_is_refused_once_something_was_committed(
    memory: MemoryHarper, ledger: Ledger, table: LedgerRoute
) -> None:
    leases = ledger.acquire(table, [0, 1], "me", TTL)
    [batch] = ledger.plan(leases, T, 1, [copy(cell())], "run")
    show(memory, ledger)
    assert said(memory, ledger, table) == ""
    commit_cell(ledger, leases, batch, result(0))
    assert "Harper has no table Positions, and the ledger says that it was synced" in said(
        memory, ledger, table
    )


def test_an_empty_table_is_refused_if_rows_were_committed(
    memory: MemoryHarper, ledger: Ledger, table: LedgerRoute
) -> None:
    committed(ledger, table, rows=1234)
    memory.make("Positions")
    show(memory, ledger)
    told = said(memory, ledger, table)
    assert "Positions holds no row, and the ledger says that it has 1,234" in told


def test_an_empty_table_of_empty_windows_is_in_step(
    memory: MemoryHarper, ledger: Ledger, table: LedgerRoute
) -> None:
    committed(ledger, table, rows=0)
    memory.make("Positions")
    show(memory, ledger)
    assert said(memory, ledger, table) == ""


def test_rows_that_the_ledger_knows_nothing_of_are_refused_unless_they_are_adopted(
    memory: MemoryHarper, ledger: Ledger, table: LedgerRoute
) -> None:
    memory.make("Positions", ROW)
    told = said(memory, ledger, table)
    assert "Positions holds 1 rows that this ledger knows nothing of" in told
    assert "write manage: adopt and type: bqh adopt positions." in told
    assert said(memory, ledger, table, adopted=True) == ""


@pytest.mark.parametrize(
    ("described", "told"),
    [
        ({"record_count": 5000}, "holds 5,000 rows"),
        ({"record_count": 5000, "estimated_record_range": [1, 2]}, "holds about 5,000 rows"),
        ({"record_count": 0}, "holds rows"),
    ],
)
def test_the_count_of_unknown_rows_is_called_what_it_is(
    memory: MemoryHarper, ledger: Ledger, table: LedgerRoute, described: dict[str, Any], told: str
) -> None:
    memory.make("Positions", ROW)
    known = memory.answer({"operation": "describe_table", "table": "Positions"})[1] | described
    memory.refuses = lambda asked: (200, known) if asked["operation"] == "describe_table" else None
    assert told in said(memory, ledger, table)


@pytest.mark.parametrize(
    ("answer", "holds"),
    [
        ((500, {"error": "RangeError"}), True),
        ((200, [{"error": "RangeError"}]), True),
        ((404, {"error": "Table 'data.Positions' does not exist"}), False),
        ((200, []), False),
        ((200, [ROW]), True),
    ],
)
def test_a_row_that_harper_cannot_read_is_a_row(
    memory: MemoryHarper, answer: tuple[int, Any], holds: bool
) -> None:
    memory.make("Positions", ROW)
    client = memory.client()
    found = client.describe_table("Positions")
    assert found is not None
    memory.refuses = lambda asked: answer
    assert holds_a_row(client, found) is holds
    assert memory.asked[-1]["limit"] == 1


def test_a_role_that_may_not_read_is_told_so(memory: MemoryHarper) -> None:
    memory.make("Positions", ROW)
    client = memory.client()
    found = client.describe_table("Positions")
    assert found is not None
    memory.refuses = lambda asked: (403, {"error": "no"})
    with pytest.raises(HarperUnauthorized):
        holds_a_row(client, found)
