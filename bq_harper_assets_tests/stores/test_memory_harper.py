"""The Harper in memory finds rows as its indexes say, and fails a test that asks for more."""

from typing import Any

import pytest

from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.stores.harper.errors import HarperError
from bq_harper_assets_tests.stores.memory_harper import away, client_of, harper_with

ROWS = [{"id": 10, "t": "b"}, {"id": 9, "t": "c"}, {"id": "1", "t": None}, {"id": 2}]


def test_ids_are_in_order_with_numbers_before_texts() -> None:
    harper = harper_with({"Ships": ROWS})
    with client_of(harper) as client:
        found = client.search_by_value("Ships", "id", "*", ["id"], reverse=True, limit=3)
    assert found == [{"id": "1"}, {"id": 10}, {"id": 9}]
    assert [row["id"] for row in harper.rows("Ships")] == [2, 9, 10, "1"]


@pytest.mark.parametrize(
    ("comparator", "value", "ids"),
    [
        ("equals", "b", [10]),
        ("equals", None, [2, "1"]),
        ("less_than", "c", [10]),
        ("greater_than", "b", [9]),
        ("greater_than_equal", "b", [9, 10]),
        ("gelt", ["b", "c"], [10]),
    ],
)
def test_a_row_without_a_value_meets_no_condition_but_null(
    comparator: Any, value: Any, ids: list[Any]
) -> None:
    with client_of(harper_with({"Ships": ROWS})) as client:
        found = client.search_by_conditions("Ships", [Condition("t", comparator, value)])
    assert [row["id"] for row in found] == ids


def test_a_row_that_cannot_be_found_is_still_in_the_order_of_ids() -> None:
    harper = harper_with({"Ships": ROWS[:2]})
    harper.tables["Ships"].unfindable = {9}
    with client_of(harper) as client:
        by_time = client.search_by_conditions("Ships", [Condition("t", "greater_than", "")])
        by_id = client.search_by_conditions("Ships", [Condition("id", "greater_than", 0)])
    assert [[row["id"] for row in found] for found in (by_time, by_id)] == [[10], [9, 10]]


@pytest.mark.parametrize(("comparator", "value"), [("contains", "b"), ("less_than", 7)])
def test_a_condition_that_it_does_not_know_fails_the_test_even_if_the_answer_is_expected(
    comparator: Any, value: Any
) -> None:
    with (
        pytest.raises((KeyError, TypeError)),
        client_of(harper_with({"Ships": ROWS})) as client,
        pytest.raises(HarperError),
    ):
        client.search_by_conditions("Ships", [Condition("t", comparator, value)])


def test_an_operation_that_it_does_not_know_fails_the_test() -> None:
    harper = harper_with({"Ships": ROWS})
    with pytest.raises(AttributeError, match="_drop_table"), client_of(harper):
        assert harper.answer({"operation": "drop_table", "table": "Ships"})[0] == 400


def test_one_that_is_away_fails_no_test() -> None:
    harper = harper_with({"Ships": ROWS})
    harper.refuses = away
    with client_of(harper) as client, pytest.raises(HarperError, match="away"):
        client.search_by_id("Ships", [9])
