"""How a row of one store compares with the other, at one instant."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.grid import Part
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.validation.spot.compared_rows import (
    ComparedRow,
    Comparison,
    Outcome,
    Side,
)
from bq_harper_assets.validation.verdict import Difference, DifferenceKind
from bq_harper_assets_tests.stores.memory_harper import client_of, harper_with
from bq_harper_assets_tests.validation.committed import DAY, MINUTE, at, ships
from bq_harper_assets_tests.validation.source_in_memory import SourceInMemory

CELL = Cell(Window(DAY, DAY + 5 * MINUTE), 0)
NEXT = Cell(Window(DAY + 5 * MINUTE, DAY + 10 * MINUTE), 0)
BOTH = {CELL: Part.whole(CELL, 1), NEXT: Part.whole(NEXT, 1)}


def stored(minute: float, number: int, **other: Any) -> dict[str, Any]:
    """A row as Harper has it."""
    return {"id": number, "event_time": at(minute), "number": number} | other


@contextmanager
def comparing(
    source: SourceInMemory,
    held: Sequence[dict[str, Any]],
    *,
    wanted: Mapping[Cell, int] | None = None,
    found: Sequence[tuple[Cell, dict[str, Any]]] = (),
    seed: int = 1,
    times: Sequence[datetime] | None = None,
) -> Iterator[list[ComparedRow]]:
    with client_of(harper_with({"Orders": list(held)})) as client:
        comparison = Comparison(
            harper=client,
            source=source.reader(client),
            parts=BOTH,
            wanted=wanted or {},
            found=found,
            seed=seed,
        )
        counts = source.counts()
        yield list(comparison.of({each: counts[each] for each in times or counts}))


def of_key(**declared: Any) -> SourceInMemory:
    """Rows 1 and 2 in the first window and 3 in the second, of which `number` is the key."""
    return SourceInMemory(ships(**declared), [(1, 1), (2, 2), (6, 3)])


def test_rows_of_the_source_that_harper_lacks_are_missing_and_others_are_the_same() -> None:
    held = [stored(1, 1), stored(6, 3)]
    with comparing(of_key(), held, wanted={CELL: 5, NEXT: 5}) as rows:
        told = [(each.cell, each.outcome, each.difference) for each in rows]
    missing = Difference(DifferenceKind.MISSING, 2)
    assert {each.side for each in rows} == {Side.BIGQUERY}
    assert len(told) == 3
    assert (CELL, Outcome.SAME, None) in told
    assert (CELL, Outcome.DIFFERENT, missing) in told
    assert (NEXT, Outcome.SAME, None) in told


def test_a_value_that_differs_is_told_with_both_values() -> None:
    held = stored(1, 1) | {"number": 7}
    with comparing(of_key(), [held], found=[(CELL, held)]) as rows:
        [row] = rows
    assert (row.side, row.outcome) == (Side.HARPER, Outcome.DIFFERENT)
    assert row.difference == Difference(DifferenceKind.CHANGED, 1, {"number": (1, 7)})


def test_as_many_rows_as_are_wanted_are_picked_and_a_seed_picks_the_same() -> None:
    source = SourceInMemory(ships(), [(1, n) for n in range(20)])
    picks = []
    for seed in (1, 1, 2):
        with comparing(source, [], wanted={CELL: 3, NEXT: 3}, seed=seed) as rows:
            picks.append([each.difference.id for each in rows if each.difference])
    assert [len(set(each)) for each in picks] == [3, 3, 3]
    assert picks[0] == picks[1] != picks[2]


def test_a_row_that_the_source_lacks_is_a_phantom_unless_its_time_has_changed_there() -> None:
    source = of_key()
    found = [(CELL, stored(3, 9)), (CELL, stored(4, 3))]  # the source has 3 in the sixth minute
    with comparing(source, [], found=found, times=[DAY + MINUTE]) as rows:
        phantom, changed = rows
    assert phantom.difference == Difference(DifferenceKind.PHANTOM, 9)
    times = {"event_time": (at(6), at(4))}
    assert changed.difference == Difference(DifferenceKind.CHANGED, 3, times)
    assert {phantom.outcome, changed.outcome} == {Outcome.DIFFERENT}
    assert source.asked == [[DAY + MINUTE]]


@pytest.mark.parametrize(
    ("deletes", "flag", "outcome"),
    [
        ("mirror", None, Outcome.DIFFERENT),
        ("keep", None, Outcome.KEPT),
        ("flag", None, Outcome.DIFFERENT),
        ("flag", "2026-01-05T00:00:00.000000Z", Outcome.KEPT),
    ],
)
def test_a_row_that_is_gone_is_kept_as_the_contract_says(
    deletes: str, flag: str | None, outcome: Outcome
) -> None:
    source = of_key(deletes=deletes)
    held = stored(3, 99, _deletedAt=flag)
    with comparing(source, [held], found=[(CELL, held)]) as rows:
        [row] = rows
    assert row.outcome is outcome
    assert (row.difference is None) == (outcome is Outcome.KEPT)


def test_equal_rows_of_a_table_without_a_key_are_all_compared() -> None:
    source = SourceInMemory(ships(key=None), [(1, 1), (1, 1), (2, 2)])
    with comparing(source, [], wanted={CELL: 9}) as rows:
        ids = {each.difference.id for each in rows if each.difference}
    assert len(ids) == len(rows) == 3


def test_a_row_that_cannot_be_stored_belongs_in_quarantine() -> None:
    source = SourceInMemory(ships(key=None), [(1, 2**60), (1, 2)])
    with comparing(source, [], wanted={CELL: 9}) as rows:
        told = sorted((each.outcome.value, each.difference is None) for each in rows)
    assert told == [("different", False), ("unstorable", True)]


def test_a_row_of_a_table_without_a_key_that_the_source_lacks_is_a_phantom() -> None:
    source = SourceInMemory(ships(key=None), [(1, 1), (2, 2)])
    held = stored(1, 9)
    with comparing(source, [held], found=[(CELL, held)]) as rows:
        [row] = rows
    assert row.difference == Difference(DifferenceKind.PHANTOM, 9)
