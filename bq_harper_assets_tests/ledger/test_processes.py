"""Several processes, and processes that die: the ledger holds them apart."""

import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from bq_harper_assets.ledger.errors import LeaseHeld
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.records import BatchState, CellState, LedgerRoute, Mode
from bq_harper_assets_tests.ledger import racers
from bq_harper_assets_tests.ledger.conftest import PROCESSES
from bq_harper_assets_tests.ledger.sample import (
    START,
    TTL,
    LetTimePass,
    T,
    cell,
    commit_cell,
    copy,
    result,
)


def _race(pool: ProcessPoolExecutor, racer: Callable[..., Any], url: str, *lanes: Any) -> list[Any]:
    """One call per process, all starting at the same moment."""
    start = time.time() + 0.3
    calls = [pool.submit(racer, url, start, *lane) for lane in lanes]
    return [call.result(120) for call in calls]


@pytest.fixture(autouse=True, scope="module")
def _warm(processes: ProcessPoolExecutor) -> None:
    """Imports done, so that racers really start together."""
    for call in [processes.submit(racers.wait, time.time() + 1) for _ in range(PROCESSES)]:
        call.result(60)


def test_processes_that_open_a_new_ledger_at_once_make_one(
    processes: ProcessPoolExecutor, unused_url: str
) -> None:
    identities = _race(processes, racers.open_at, unused_url, *[()] * PROCESSES)
    assert len(set(identities)) == 1
    with open_ledger(unused_url) as ledger:
        assert str(ledger.identity()) == identities[0]
        assert len(ledger.routes()) == 1


def test_of_processes_that_want_the_same_slice_one_wins(
    processes: ProcessPoolExecutor, ledger_url: str, ledger: Ledger, table: LedgerRoute
) -> None:
    slices = [[0, 1], [1, 2], [3, 1, 2], [0, 1, 2, 3]]
    lanes = [(f"owner {number}", slices[number]) for number in range(PROCESSES)]
    holders = _race(processes, racers.acquire_at, ledger_url, *lanes)
    winner = ledger.leases(table)[1].owner
    assert winner is not None
    assert [owner for owner, _ in lanes].count(winner) == 1
    assert winner in holders
    assert [lease.owner for lease in ledger.leases(table)].count(winner) == len(dict(lanes)[winner])
    losers = [holder for (owner, _), holder in zip(lanes, holders, strict=True) if owner != holder]
    assert len(losers) == PROCESSES - 1


@pytest.mark.promise("D5")
def test_of_processes_that_want_the_same_claim_one_wins_and_the_others_learn_who(
    processes: ProcessPoolExecutor, ledger_url: str, ledger: Ledger
) -> None:
    lanes = [(f"owner {number}",) for number in range(PROCESSES)]
    found = _race(processes, racers.claim_at, ledger_url, *lanes)
    assert [is_mine for _, is_mine in found].count(True) == 1
    (claim,) = ledger.claims()
    assert {owner for owner, _ in found} == {claim.owner}
    assert (claim.epoch, claim.is_live) == (1, True)


def test_owners_that_take_turns_get_rising_epochs_and_batches(
    processes: ProcessPoolExecutor, ledger_url: str, ledger: Ledger, table: LedgerRoute
) -> None:
    rounds = 4
    lanes = [(f"owner {number}", rounds) for number in range(PROCESSES)]
    turns = _race(processes, racers.take_turns, ledger_url, *lanes)
    commits = sorted(commit for turn in turns for commit in turn)
    assert [epoch for epoch, _, _ in commits] == list(range(1, PROCESSES * rounds + 1))
    assert [seq for _, seq, _ in commits] == list(range(1, PROCESSES * rounds + 1))
    assert [mode for _, _, mode in commits].count("copy") == 1
    assert commits[0][2] == "copy"
    (record,) = ledger.cells(table, START, START + TTL)
    assert record.commit is not None
    assert record.commit.batch == PROCESSES * rounds


def test_owners_of_different_slices_do_not_disturb_each_other(
    processes: ProcessPoolExecutor, ledger_url: str, ledger: Ledger, table: LedgerRoute
) -> None:
    lanes = [(number, 10) for number in range(4)]
    assert _race(processes, racers.work_on_slice, ledger_url, *lanes) == [""] * 4
    progress = ledger.progress(table, START)
    assert progress.cells == {CellState.SYNCED: 40}
    assert sorted(batch.seq for batch in ledger.history(table)) == list(range(1, 41))


@pytest.mark.parametrize("point", ["inside plan", "after plan", "inside commit"])
def test_a_killed_owner_leaves_nothing_half_done_and_its_cell_is_not_copied_over(
    ledger_url: str,
    ledger: Ledger,
    table: LedgerRoute,
    let_time_pass: LetTimePass,
    point: str,
) -> None:
    command = [sys.executable, "-m", "bq_harper_assets_tests.ledger.crash", ledger_url, point]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as doomed:
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == "ready\n"
        doomed.kill()
    planned = [] if point == "inside plan" else [BatchState.PLANNED]
    assert [batch.state for batch in ledger.history(table)] == planned
    with pytest.raises(LeaseHeld, match="doomed"):
        ledger.acquire(table, [0], "heir", TTL)
    let_time_pass(TTL)
    leases = ledger.acquire(table, [0], "heir", TTL)
    (batch,) = ledger.plan(leases, T, 1, [copy(cell())], "run-heir")
    assert batch.mode is (Mode.RECONCILE if planned else Mode.COPY)
    commit_cell(ledger, leases, batch, result())
    assert [cells.state for cells in ledger.cells(table, START, START + TTL)] == [CellState.SYNCED]
