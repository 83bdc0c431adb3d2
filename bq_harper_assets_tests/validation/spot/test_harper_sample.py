"""Which rows of Harper are picked: of the wanted cells, at random instants."""

from random import Random
from typing import Any

import pytest

from bq_harper_assets.ledger.questions.status import CellCommit
from bq_harper_assets.stores.harper.errors import HarperError
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.validation.spot.harper_sample import ROWS_PER_SEARCH, harper_rows
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper, client_of, harper_with
from bq_harper_assets_tests.validation.committed import DAY, MINUTE, at, ships
from bq_harper_assets_tests.validation.source_in_memory import SourceInMemory

SLICED = ships(slices=2)


def cell(minute: float, part: int) -> Cell:
    return Cell(Window(DAY + minute * MINUTE, DAY + (minute + 5) * MINUTE), part)


def commit(upto: float) -> CellCommit:
    return CellCommit(
        batch=1,
        t=DAY,
        schema_version=1,
        rows=1,
        digest="",
        fingerprint="",
        committed_at=DAY,
        upto=DAY + upto * MINUTE,
        is_closed=True,
    )


def picked(
    harper: MemoryHarper, wanted: dict[Cell, int], upto: float = 5, seed: int = 1
) -> list[tuple[Cell, Any]]:
    source = SourceInMemory(SLICED)
    with client_of(harper) as client:
        commits = {each: commit(upto) for each in wanted}
        rows = harper_rows(client, source.reader(client), commits, wanted, Random(seed))
        return [(of, row["id"]) for of, row in rows]


def holding(*rows: tuple[float, int]) -> MemoryHarper:
    """Rows of these minutes and ids; ids from 0 to 12 are of slice 1, 13 and 15 of slice 0."""
    return harper_with({"Orders": [{"id": n, "event_time": at(m)} for m, n in rows]})


def test_each_wanted_row_is_picked_once_and_of_its_slice() -> None:
    harper = holding(*((1, n) for n in range(5)), (2, 13), (3, 15))
    found = picked(harper, {cell(0, 0): 2, cell(0, 1): 3})
    of = {part: {row for each, row in found if each.slice == part} for part in (0, 1)}
    assert of[0] <= {13, 15}
    assert of[1] <= set(range(5))
    assert 1 <= len(of[0]) <= 2
    assert 1 <= len(of[1]) <= 3
    assert len(found) == len({row for _, row in found})


def test_no_more_rows_are_picked_than_are_wanted() -> None:
    found = picked(holding(*((n / 10, n) for n in range(13))), {cell(0, 1): 1})
    assert len(found) == 1


def test_one_page_of_a_window_serves_all_its_slices_and_no_more_is_asked_than_needed() -> None:
    harper = holding((1, 1), (1, 13))
    assert len(picked(harper, {cell(0, 0): 1, cell(0, 1): 1})) == 2
    searches = harper.of("search_by_conditions")
    assert 1 <= len(searches) <= 2  # a page after the instant, or the one before it
    assert {each["limit"] for each in searches} == {ROWS_PER_SEARCH}
    assert {each["sort"]["attribute"] for each in searches} == {"event_time"}


def test_rows_are_found_on_either_side_of_an_instant_and_not_outside_of_what_is_committed() -> None:
    early, late = holding((0.001, 1)), holding((2.999, 1))
    for seed in range(3):
        for harper in (early, late):
            assert picked(harper, {cell(0, 1): 1}, upto=3, seed=seed) == [(cell(0, 1), 1)]
    assert picked(holding((3, 1), (-1, 2)), {cell(0, 1): 1}, upto=3) == []


def test_any_of_the_rows_of_one_time_may_be_picked() -> None:
    harper = holding(*((1, n) for n in range(13)))
    found = {row for seed in range(12) for _, row in picked(harper, {cell(0, 1): 1}, seed=seed)}
    assert len(found) > 2


def test_windows_are_searched_each_by_itself() -> None:
    harper = holding((1, 1), (6, 2))
    first, second = cell(0, 1), cell(5, 1)
    with client_of(harper) as client:
        reader = SourceInMemory(SLICED).reader(client)
        commits = {first: commit(5), second: commit(10)}
        wanted = {first: 1, second: 1}
        rows = list(harper_rows(client, reader, commits, wanted, Random(1)))
    assert [(each, row["id"]) for each, row in rows] == [(first, 1), (second, 2)]


def test_a_row_without_its_id_is_no_answer() -> None:
    harper = harper_with({"Orders": [{"id": None, "event_time": at(1)}]})
    with pytest.raises(HarperError):
        picked(harper, {cell(0, 1): 1})


def test_as_many_searches_are_made_as_the_slice_that_wants_most() -> None:
    harper = holding((1, 1))
    picked(harper, {cell(0, 0): 1, cell(0, 1): 9})
    after = [
        each
        for each in harper.of("search_by_conditions")
        if each["conditions"][0]["value"][1] == at(5)
    ]
    assert len(after) == 9
