"""What is said of the copies of checkpoints, and of keys that collide."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.stores.harper.mirror.checkpoints import mirror_checkpoints
from bq_harper_assets.stores.harper.mirror.tables import CHECKPOINTS
from bq_harper_assets.validation.progress.stuck_reasons import diagnose
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper, away, client_of, harper_with
from bq_harper_assets_tests.validation.committed import DAY, MINUTE, at, committed, ships


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(empty_ledger(tmp_path / "ledger.db")) as opened:
        yield opened


def said_of(ledger: Ledger, harper: MemoryHarper, **changed: Any) -> list[str]:
    """After the checkpoints were copied, and those of the first slice changed by somebody."""
    known, nobody = ships(slices=2), None
    route = committed(ledger, known, 0, 5, slices=[0, 1])
    with client_of(harper) as client:
        mirror_checkpoints(ledger, client, known)
        first = harper.rows(CHECKPOINTS.name)[0]
        first |= changed
        subject = Subject(known, nobody, client, ledger)  # type: ignore[arg-type]
        return list(diagnose(subject, route, ledger.checkpoints(route, DAY)))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, ""),
        ({"lastTimestamp": at(5)}, ""),
        ({"lastTimestamp": at(2)}, ""),  # a copy may be older
        ({"lastTimestamp": at(6)}, f"says {at(6)}, and the ledger says 2026-01-05T00:05:00+00:00"),
        ({"lastTimestamp": None}, "has the lastTimestamp None, which is no time"),
        ({"lastTimestamp": "garbage"}, "has the lastTimestamp 'garbage', which is no time"),
        ({"derivedFrom": None}, "was not written by this project's ledger "),
    ],
)
def test_a_copy_that_says_more_than_the_ledger_is_wrong(
    changed: dict[str, Any], said: str, ledger: Ledger
) -> None:
    told = said_of(ledger, harper_with({CHECKPOINTS.name: []}), **changed)
    if not said:
        assert told == []
        return
    [line] = told
    assert line.startswith(f"the row orders|s00 of {CHECKPOINTS.name} {said}")
    assert line.endswith("nothing is lost, and the next run writes it again")


def test_without_copies_or_without_harper_nothing_is_said(ledger: Ledger) -> None:
    known, nobody = ships(), None
    route = committed(ledger, known, 0, 5)
    points = ledger.checkpoints(route, DAY)
    assert points[0].until == DAY + 5 * MINUTE
    for harper in (MemoryHarper(), harper_with({CHECKPOINTS.name: []})):
        with client_of(harper) as client:
            subject = Subject(known, nobody, client, ledger)  # type: ignore[arg-type]
            assert list(diagnose(subject, route, points)) == []
            harper.refuses = away
            assert list(diagnose(subject, route, points)) == []
