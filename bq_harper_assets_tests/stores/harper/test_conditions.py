"""A condition is sent in the form that Harper takes, and only with comparators that it knows."""

from typing import Any

import pytest

from bq_harper_assets.stores.harper.conditions import Condition


def test_a_condition_has_its_three_fields() -> None:
    assert Condition("at", "gelt", ["a", "b"]).as_fields() == {
        "attribute": "at", "comparator": "gelt", "value": ["a", "b"],
    }  # fmt: skip


def test_the_short_forms_give_wrong_rows_and_are_refused() -> None:
    comparator: Any = "ge"
    with pytest.raises(ValueError, match="comparator 'ge' is none of equals, not_equal"):
        Condition("at", comparator, "a")
