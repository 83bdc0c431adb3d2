"""When each day was proved last, by what the ledger has of it."""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from bq_harper_assets.defs.checks.deep_proofs import (
    DEEP_PROOF_KIND,
    IN_VAIN,
    DayProof,
    closed_cells_by_day,
    last_looks,
    whose_turn,
)
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.ledger.verbs.audit import Note
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.validation.committed import DAY, MINUTE, begun, committed, ships

ONE_DAY = 24 * 60
TODAY, TOMORROW = DAY.date(), DAY.date() + timedelta(days=1)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(empty_ledger(tmp_path / "ledger.db")) as opened:
        yield opened


def note(ledger: Ledger, route: LedgerRoute, day: date, outcome: str) -> None:
    ledger.record_audit(route, Note(DEEP_PROOF_KIND, day.isoformat(), outcome, {}))


def test_closed_cells_are_those_of_their_windows_day(ledger: Ledger) -> None:
    known = ships()
    assert closed_cells_by_day(ledger, known) == {}
    committed(ledger, known, ONE_DAY - 5, ONE_DAY + 5)
    leases, _ = begun(ledger, known, 0, 5)
    ledger.release(leases)
    committed(ledger, known, 10, 15, upto=DAY + 12 * MINUTE)
    found = closed_cells_by_day(ledger, known)
    midnight = DAY + ONE_DAY * MINUTE
    assert {day: [cell for cell, _ in cells] for day, cells in found.items()} == {
        TODAY: [Cell(Window(midnight - 5 * MINUTE, midnight), 0)],
        TOMORROW: [Cell(Window(midnight, midnight + 5 * MINUTE), 0)],
    }
    [[(_, t)], _] = found.values()
    assert abs(ledger.now() - t) < MINUTE


def test_a_day_without_a_note_counts_from_its_oldest_sync(ledger: Ledger) -> None:
    known = ships()
    committed(ledger, known, 0, 5)
    committed(ledger, known, 5, 10)
    cells = closed_cells_by_day(ledger, known)
    times = [t for _, t in cells[TODAY]]
    assert last_looks(ledger, known, cells) == {TODAY: DayProof(min(times))}
    assert min(times) < max(times)


def test_a_day_counts_from_its_newest_proof_and_a_turn_in_vain_is_kept_until_the_next(
    ledger: Ledger,
) -> None:
    known = ships()
    route = committed(ledger, known, 0, 5)
    committed(ledger, known, ONE_DAY, ONE_DAY + 5)
    cells = closed_cells_by_day(ledger, known)
    synced = cells[TODAY][0][1]
    note(ledger, route, TODAY, IN_VAIN)
    [vain] = ledger.audit(kind=DEEP_PROOF_KIND)
    looks = last_looks(ledger, known, cells)
    assert looks[TODAY] == DayProof(synced, vain.at)
    assert looks[TOMORROW].in_vain is None
    note(ledger, route, TODAY, "issues_detected")
    note(ledger, route, TODAY, "healthy")
    proved = ledger.audit(kind=DEEP_PROOF_KIND)[0]
    assert last_looks(ledger, known, cells)[TODAY] == DayProof(proved.at)
    note(ledger, route, TODAY, IN_VAIN)
    again = ledger.audit(kind=DEEP_PROOF_KIND)[0]
    assert last_looks(ledger, known, cells)[TODAY] == DayProof(proved.at, again.at)


def test_notes_of_a_whole_round_are_found(ledger: Ledger) -> None:
    known = ships(scrub="3d")
    route = committed(ledger, known, 0, 5)
    cells = closed_cells_by_day(ledger, known)
    note(ledger, route, TODAY, "healthy")
    for _ in range(15):  # 4 * (1 day with cells + 3 days of the scrub) are looked at
        note(ledger, route, TOMORROW, "healthy")
    [*_, proved] = ledger.audit(kind=DEEP_PROOF_KIND)
    assert last_looks(ledger, known, cells) == {TODAY: DayProof(proved.at)}
    note(ledger, route, TOMORROW, "healthy")
    assert last_looks(ledger, known, cells) == {TODAY: DayProof(cells[TODAY][0][1])}


@pytest.mark.parametrize(
    ("late", "count"), [(timedelta(0), 1), (timedelta(microseconds=1), 2)], ids=["due", "late"]
)
def test_a_night_does_twice_its_share_once_days_are_half_a_day_before_their_end(
    late: timedelta, count: int
) -> None:
    known = ships(scrub="4d")
    now = DAY + timedelta(days=9)
    at = now - known.scrub + timedelta(hours=12) - late
    looks = {TODAY + timedelta(days=n): DayProof(at) for n in range(4)}
    assert whose_turn(known, looks, now) == [TODAY, TOMORROW][:count]
