"""Which cells a proof is asked for, and what it says while it goes on and at its end."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bq_harper_assets.cli.exit_codes import ExitCode
from bq_harper_assets.cli.output.proof_text import PROOF_HEADER
from bq_harper_assets.cli.runs import proof_runs
from bq_harper_assets.cli.runs.proof_runs import (
    SHOWN_ROWS,
    NothingSynced,
    Proving,
    prove,
    synced_cells,
)
from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window, windows_between
from bq_harper_assets.sync.revisit.due_cells import Due, Reason
from bq_harper_assets.validation.proof.cell_proof import CellProof
from bq_harper_assets.validation.verdict import ProofStatus
from bq_harper_assets_tests.defs.test_partitions import contract
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.ledger.sample import FACTS, START, TTL, T, cell, copy, result
from bq_harper_assets_tests.temporary_project import HOUR, hours_ago


def test_a_long_range_is_proved_in_parts_of_whole_windows_and_in_the_order_of_time() -> None:
    start = hours_ago(200)
    cells = [
        Cell(window, number)
        for window in windows_between(start, start + 200 * HOUR, HOUR)
        for number in range(3)
    ]
    parts = list(proof_runs.windows_at_once(cells, proof_runs.WINDOWS_AT_ONCE))
    assert [len(part) for part in parts] == [96 * 3, 96 * 3, 8 * 3]
    assert [cell for part in parts for cell in part] == cells
    assert list(proof_runs.windows_at_once([], 2)) == []


SHIPS = contract(id=FACTS.name, slices=4)


def of_hour(hour: int, part: int = 0) -> Cell:
    return Cell(Window(START + hour * HOUR, START + (hour + 1) * HOUR), part)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(empty_ledger(tmp_path / "ledger.db")) as made:
        yield made


def synced(ledger: Ledger, *places: tuple[int, int]) -> LedgerRoute:
    """These hours and slices are committed, in this order; hour 9 of slice 3 has failed."""
    table = ledger.register_route(FACTS)
    ledger.record_schema(table, {"columns": []}, 0)
    leases = ledger.acquire(table, [0, 1, 2, 3], "run-1", TTL)
    wanted = [copy(cell(*place)) for place in (*places, (9, 3))]
    *done, fails = ledger.plan(leases, T, 1, wanted, "run-1")
    ledger.commit_cells(leases, [(each, result(1)) for each in done])
    ledger.fail_batch(fails, "no")
    ledger.release(leases)
    return table


def test_what_was_committed_in_the_range_is_proved_in_the_order_of_time(ledger: Ledger) -> None:
    synced(ledger, (2, 1), (0, 0), (1, 3), (1, 0))
    every = [of_hour(0), of_hour(1), of_hour(1, 3), of_hour(2, 1)]
    naive = START.replace(tzinfo=None)

    def asked(*limits: Any) -> list[Cell]:
        return synced_cells(SHIPS, ledger, *limits)

    assert asked(None, None, None) == every
    assert asked(naive + HOUR, None, None) == every[1:]
    assert asked(naive + 1.5 * HOUR, None, None) == every[1:]  # the window in which it begins
    assert asked(None, naive + HOUR, None) == every[:1]
    assert asked(naive + HOUR, naive + 2 * HOUR, None) == every[1:3]
    assert asked(None, None, "1-3") == every[2:]


def test_a_range_of_which_nothing_is_synced_says_what_to_type(ledger: Ledger) -> None:
    with pytest.raises(NothingSynced, match=r"nothing of positions is synced yet, .* Next: bqh s"):
        synced_cells(SHIPS, ledger, None, None, None)
    synced(ledger, (0, 0))
    late = START.replace(tzinfo=None) + HOUR
    for limits in ((late, None, None), (None, late - 2 * HOUR, None), (None, None, "2")):
        with pytest.raises(NothingSynced, match=r"is synced in that range, .* Next: bqh sync"):
            synced_cells(SHIPS, ledger, *limits)


@dataclass
class Finding:
    """Stands where a prover does, and finds what it is told to."""

    said: dict[Cell, CellProof]
    retry: RetryPolicy = field(default_factory=lambda: RetryPolicy(max_retries=0))
    asked: list[tuple[list[Cell], bool, int]] = field(default_factory=list)

    def prove(self, cells: Sequence[Cell], *, deep: bool, shown: int) -> list[CellProof]:
        self.asked.append((list(cells), deep, shown))
        return [self.said[each] for each in cells]


def proof(where: Cell, status: ProofStatus = ProofStatus.PROVED, **known: Any) -> CellProof:
    return CellProof(cell=where, status=status, message="why", **{"t": T, "batch": 1, **known})


def looking(
    ledger: Ledger, nowhere: str, *proofs: CellProof, due: Sequence[Due] = ()
) -> tuple[Proving, Finding]:
    prover = Finding({each.cell: each for each in proofs})
    harper = HarperConnection(url=nowhere, user="nobody", password="none")
    return (
        Proving(
            contract=SHIPS,
            cells=[each.cell for each in proofs],
            ledger=ledger,
            prover=prover,  # type: ignore[arg-type]
            harper=harper,
            due=due,
        ),
        prover,
    )


def silent() -> Console:
    return Console(file=io.StringIO())


def test_a_proof_goes_on_by_some_windows_until_a_store_answers_for_none_of_them(
    ledger: Ledger, nowhere: str
) -> None:
    hours = [of_hour(hour) for hour in range(3 * proof_runs.WINDOWS_AT_ONCE)]
    away = {"status": ProofStatus.CHECK_FAILED, "t": None}
    some = [proof(each) for each in hours]
    for at in (0, *range(96, 192)):
        some[at] = proof(hours[at], **away)
    asked, prover = looking(ledger, nowhere, *some)
    found = list(asked.proofs_in_turn(hours, silent(), deep=True, shown=7))
    assert [each for part in found for each in part] == some[:192]
    assert prover.asked == [(hours[:96], True, 7), (hours[96:192], True, 7)]


def test_what_was_not_looked_at_is_counted_by_its_reason(ledger: Ledger, nowhere: str) -> None:
    synced(ledger, (0, 0), (1, 0), (2, 0), (3, 0))
    due = [
        Due(of_hour(1), Reason.CLOSED_SINCE),
        Due(of_hour(5), Reason.MISSING),
        Due(of_hour(2), Reason.FAILED),
    ]
    asked, _ = looking(ledger, nowhere, proof(of_hour(0)), proof(of_hour(1)), due=due)
    unseen = asked.unseen(asked.cells, given_up=3)
    assert unseen.never_synced == (of_hour(5),)
    assert unseen.closed_since == (of_hour(1),)
    assert (unseen.outside, unseen.given_up) == (2, 3)


def test_nothing_is_outside_for_a_table_that_the_ledger_does_not_know(
    ledger: Ledger, nowhere: str
) -> None:
    asked, _ = looking(ledger, nowhere, proof(of_hour(0)))
    assert not asked.unseen(asked.cells, given_up=0)
    assert asked.record([proof(of_hour(0))]) == set()


def test_each_window_is_told_then_the_answer_then_what_went_wrong(
    ledger: Ledger, nowhere: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = synced(ledger, (0, 0), (1, 0), (2, 0))
    failed = proof(of_hour(1), ProofStatus.CHECK_FAILED, t=None, batch=None)
    proofs = [proof(of_hour(0), rows=5), failed, proof(of_hour(2))]
    asked, prover = looking(ledger, nowhere, *proofs)
    found = prove(asked, asked.cells, "text", deep=True, show=True)
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[:2] == ["verifying 3 cells of positions", PROOF_HEADER]
    assert [line.split()[0] for line in lines[2:5]] == [
        "2026-11-16T00:00",
        "2026-11-16T01:00",
        "2026-11-16T02:00",
    ]
    assert lines[5].startswith("positions is equal to BigQuery as of ")
    warning, error = said.err.splitlines()
    assert warning.startswith("warning: the validation of positions could not be copied to Harper")
    assert error == "error: why"
    assert (list(found.proofs), found.deep, found.unseen.given_up) == (proofs, True, 0)
    assert found.exit_code is ExitCode.ERROR
    assert prover.asked == [(asked.cells, True, SHOWN_ROWS)]
    [note] = ledger.audit(table, kind="validation")
    assert note.subject == "positions"


def test_programs_read_no_line_and_hear_no_more_than_errors(
    ledger: Ledger, nowhere: str, capsys: pytest.CaptureFixture[str]
) -> None:
    synced(ledger, (0, 0))
    asked, prover = looking(ledger, nowhere, proof(of_hour(0)))
    found = prove(asked, asked.cells, "json", deep=False, show=False)
    said = capsys.readouterr()
    assert said.out == ""
    assert all(line.startswith("warning: ") for line in said.err.splitlines())
    assert (found.deep, found.exit_code) == (False, ExitCode.DONE)
    assert prover.asked == [(asked.cells, False, 0)]


def test_a_repair_is_not_advised_by_the_repair_itself(
    ledger: Ledger, nowhere: str, capsys: pytest.CaptureFixture[str]
) -> None:
    synced(ledger, (0, 0))
    differs = proof(of_hour(0), ProofStatus.DIFFERS, missing=1)
    for repairs in (True, False):
        asked, _ = looking(ledger, nowhere, differs)
        prove(asked, asked.cells, "text", deep=False, show=False, repairs=repairs)
        assert ("type: bqh repair positions" in capsys.readouterr().out) is not repairs
