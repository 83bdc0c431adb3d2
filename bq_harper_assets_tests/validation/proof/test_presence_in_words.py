"""What is said of counted rows, and which of them fail the table."""

from dataclasses import replace
from pathlib import Path

import pytest

from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.validation.proof.presence import (
    PRESENCE_CHECK,
    Presence,
    check_presence,
    newest_loss,
    note_presence,
)
from bq_harper_assets.validation.proof.presence_rows import NAMED, Counted, Some
from bq_harper_assets.validation.verdict import DifferenceKind, ProofStatus, Severity, Verdict
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper, away, client_of, harper_with
from bq_harper_assets_tests.validation.committed import at, committed, ships

FOUND = Counted(held=1_200, in_cells=1_100)


def of(rows: Counted, *, is_adopted: bool = False) -> Verdict:
    of_others = {"is_adopted": True} if is_adopted else {}
    return Presence(contract_id="ships", table="Ships", rows=rows, **of_others).verdict


def test_a_table_whose_rows_are_all_found_passes() -> None:
    found = of(FOUND)
    assert (found.check, found.status) == (PRESENCE_CHECK, ProofStatus.PROVED)
    assert (found.passed, found.severity, found.rows) == (True, Severity.WARN, ())
    assert found.message == (
        "Harper holds 1,200 rows of Ships in the order of ids; 1,100 are in synced cells, and each"
        " is found by its window"
    )


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (Counted(kept=1), "1 is kept there after they were gone from BigQuery"),
        (Counted(beyond=2_000), "2,000 are in open windows, after what is synced of them"),
        (Counted(waiting=2), "2 are in cells that were begun and wait to be synced"),
        (Counted(before=2), "2 are before the first window"),
        (Counted(younger=2), "2 are after the newest window that was synced"),
        (Counted(other_form=2), "2 are of others, with times in another form"),
        (Counted(unjudged=1), "1 is not judged, because a run is at work on their cells"),
    ],
)
def test_rows_that_are_no_fault_are_listed(rows: Counted, said: str) -> None:
    found = of(rows)
    assert found.passed
    assert found.message.endswith(f"; {said}")


def test_figures_count_rows_of_each_kind() -> None:
    rows = Counted(
        held=1,
        in_cells=2,
        kept=3,
        unjudged=4,
        lost=Some(5),
        timeless=Some(6),
        stray=Some(7),
        other_form=8,
        beyond=10,
        waiting=20,
        before=40,
        younger=80,
    )
    assert of(rows).metadata == {
        "held": 1,
        "in_cells": 2,
        "kept": 3,
        "outside": 157,
        "in_no_cell": 7,
        "without_time": 6,
        "in_another_form": 8,
        "not_judged": 4,
        "lost": 11,
    }
    assert of(rows, is_adopted=True).metadata["lost"] == 5


def test_rows_that_no_window_finds_fail_and_are_named() -> None:
    found = of(replace(FOUND, lost=Some(1_000, ("a", "b")), timeless=Some(1, (7,))))
    assert (found.passed, found.severity) == (False, Severity.ERROR)
    assert found.status is ProofStatus.DIFFERS
    assert [(row.kind, row.id) for row in found.rows] == [
        (DifferenceKind.LOST, row_id) for row_id in ("a", "b", 7)
    ]
    said = "; 1,001 of them are found by no window, so that no cell's proof sees them: 'a', 'b', 7."
    assert said in found.message
    assert "bqh repair ships brings back" in found.message
    assert "each is found by its window" not in found.message


def test_rows_between_synced_windows_fail_only_where_nobody_else_writes() -> None:
    rows = replace(FOUND, stray=Some(1, ("x",)), timeless=Some(2, ("y", "z")))
    found = of(rows)
    assert not found.passed
    assert [row.id for row in found.rows] == ["y", "z", "x"]
    alone = of(replace(FOUND, stray=Some(1, ("x",)))).message
    assert "in the order of ids; 1,100 are in synced cells, and each is found by" in alone
    assert "1 of them is in windows between synced ones that no sync has ever named" in (
        found.message
    )
    assert "nobody here has written it and no proof looks there: 'x'." in found.message
    assert "bqh reconcile ships compares these windows" in found.message
    adopted = of(rows, is_adopted=True)
    assert (adopted.passed, adopted.rows) == (True, ())
    assert adopted.message.endswith(
        "; 1 is in windows that no sync has named; 2 are without a time that can be read"
    )


def test_as_many_rows_are_named_as_there_is_room_for_and_three_are_said() -> None:
    many = tuple(f"{n}" * 90 for n in range(NAMED))
    found = of(replace(FOUND, lost=Some(99, many[1:]), timeless=Some(9, many)))
    assert len(found.rows) == NAMED
    said = found.message.partition("sees them: ")[2].partition(". bqh repair")[0].split(", ")
    assert [len(each) for each in said] == [80, 80, 80]


def test_the_newest_look_decides_whether_rows_are_lost(tmp_path: Path) -> None:
    with open_ledger(empty_ledger(tmp_path / "ledger.db")) as ledger:
        route = committed(ledger, ships(), 0, 5)
        assert newest_loss(ledger, route) is None
        note_presence(ledger, route, of(replace(FOUND, lost=Some(1, ("a",)))))
        lost = newest_loss(ledger, route)
        assert lost
        assert lost.startswith("As of 2")
        assert "1 of them is found by no window" in lost
        assert lost.endswith(". To look again, type: bqh verify orders --deep")
        with client_of(MemoryHarper(refuses=away)) as client:
            failed = check_presence(client, ledger, ships())
        assert failed
        note_presence(ledger, route, failed)  # which says nothing of rows
        assert newest_loss(ledger, route) == lost
        note_presence(ledger, route, of(FOUND))
        assert newest_loss(ledger, route) is None
        [note, *_] = ledger.audit(route, 1)
        assert (note.subject, note.outcome, note.detail["held"]) == ("orders", "proved", 1_200)


def test_a_table_that_was_never_synced_is_not_looked_at(tmp_path: Path) -> None:
    harper = MemoryHarper()
    with (
        open_ledger(empty_ledger(tmp_path / "ledger.db")) as ledger,
        client_of(harper) as client,
    ):
        assert check_presence(client, ledger, ships()) is None
    assert harper.asked == []


def test_a_check_looks_at_the_contracts_table(tmp_path: Path) -> None:
    known = ships()
    harper = harper_with({"Orders": [{"id": 1, "event_time": at(1)}]})
    with (
        open_ledger(empty_ledger(tmp_path / "ledger.db")) as ledger,
        client_of(harper) as client,
    ):
        committed(ledger, known, 0, 5)
        found = check_presence(client, ledger, known)
        assert found
        assert (found.passed, found.metadata["in_cells"]) == (True, 1)
        harper.refuses = away
        found = check_presence(client, ledger, known)
    assert found
    assert (found.check, found.status) == (PRESENCE_CHECK, ProofStatus.CHECK_FAILED)
    assert (found.passed, found.severity) == (False, Severity.ERROR)
    assert found.message.startswith("the rows of Orders could not be counted: ")
