"""A row that is not in its window any more is looked up before it is called gone."""

from contextlib import ExitStack

import pytest

from bq_harper_assets.instants import micros_at
from bq_harper_assets.stores.harper.target import HarperTarget
from bq_harper_assets.sync.moved.gone_or_moved import (
    KEYS_AT_ONCE,
    find_later,
    find_vanished,
    times_of_rows,
)
from bq_harper_assets_tests.sync.memory_source import DAY, MemoryPin, Small, ship

START = micros_at(DAY)


def pin_and_target(small: Small) -> tuple[MemoryPin, HarperTarget]:
    plan = small.source.planned(small.route.contract)
    target = HarperTarget(small.route.contract, small.harper.client())
    return MemoryPin(small.source, plan, small.source.now), target


def micros(minute: float) -> int:
    return START + int(minute * 60_000_000)


def test_a_row_is_elsewhere_if_a_window_up_to_t_has_it_and_else_gone(small: Small) -> None:
    small.source.put(
        ship(1, 70),
        {**ship(2, 0), "ts": None},
        ship(3, -1 / 60),
        ship(4, 24 * 60 + 30),
        ship(5, 0),
    )
    pin, target = pin_and_target(small)
    found = find_vanished(pin, target, START, [1, 2, 3, 4, 5, 6])
    assert found.gone == [2, 3, 4, 6]
    assert found.elsewhere == {1: micros(70), 5: micros(0)}
    assert found.later == {}


def test_a_row_at_t_itself_is_not_gone(small: Small) -> None:
    small.source.put(ship(1, 0))
    pin, target = pin_and_target(small)
    small.source.history[-1][1][0] = {**ship(1, 0), "ts": pin.t}
    assert find_vanished(pin, target, START, [1]).gone == []


def test_rows_without_a_key_are_gone_and_nothing_is_asked(small: Small) -> None:
    small.declare(key=None)
    small.source.put(ship(1, 70))
    pin, target = pin_and_target(small)
    assert find_vanished(pin, target, START, ["a", "b"]).gone == ["a", "b"]
    with ExitStack() as keep:
        assert find_later(pin, target, START, ["a"], keep) == {}
    assert small.source.asked == []


def test_of_no_row_nothing_is_asked(small: Small) -> None:
    pin, target = pin_and_target(small)
    assert find_vanished(pin, target, START, []).gone == []
    with ExitStack() as keep:
        assert find_later(pin, target, START, [], keep) == {}
    assert small.source.asked == []


@pytest.mark.parametrize("lost", [[], [1]])
def test_rows_are_looked_up_by_the_key_that_harper_holds(small: Small, lost: list[int]) -> None:
    small.declare(key=["n", "name"])
    rows = [ship(n, 70 + n) for n in range(4)]
    small.source.put(*rows)
    held = {f"id{n}": {"_id": f"id{n}", "id": f"id{n}", "n": n, "name": "x"} for n in range(4) if n not in lost}  # fmt: skip # noqa: E501
    pin, target = pin_and_target(small)
    key = pin.plan.primary_key
    small.harper.make("Ships", *held.values(), key=key)
    small.harper.tables["Ships"].rows["id3"]["name"] = None
    ids = ["id2", "id1", "id0", "id3", "id9"]
    times = times_of_rows(pin, target, ids)
    known = [n for n in (2, 1, 0) if n not in lost]
    assert times == {f"id{n}": micros(70 + n) for n in known}
    assert small.source.asked[-1] == ("times", [[n, "x"] for n in known])


def test_a_query_is_run_again_for_the_rows_that_it_returns_now(small: Small) -> None:
    small.source.put()
    pin, target = pin_and_target(small)
    small.source.put(ship(1, 70), ship(2, 80), ship(4, -5))
    with ExitStack() as keep:
        found = find_later(pin, target, START, [3, 2, 1, 4], keep)
        assert {row_id: each.micros for row_id, each in found.items()} == {
            1: micros(70), 2: micros(80),
        }  # fmt: skip
        assert found[1].pin is found[2].pin
        assert found[1].pin.t == small.source.now > pin.t
    assert ("asked_again", [[2], [1], [4]]) in small.source.asked


def test_a_row_that_goes_while_the_query_is_run_again_is_not_found(small: Small) -> None:
    small.source.put()
    pin, target = pin_and_target(small)
    small.source.put(ship(1, 70), ship(2, 80))
    small.source.while_asked_again = lambda: small.source.put(ship(2, 90))
    with ExitStack() as keep:
        found = find_later(pin, target, START, [1, 2], keep)
    assert {row_id: each.micros for row_id, each in found.items()} == {2: micros(90)}


def test_more_rows_than_one_query_names_are_all_looked_up(small: Small) -> None:
    small.source.put()
    pin, target = pin_and_target(small)
    count = KEYS_AT_ONCE + 3
    small.source.put(*(ship(n, 70) for n in range(count)))
    with ExitStack() as keep:
        found = find_later(pin, target, START, list(range(count)), keep)
    assert len(found) == count
    again = [len(keys) for how, keys in small.source.asked if how == "asked_again"]
    assert again == [KEYS_AT_ONCE, 3]
