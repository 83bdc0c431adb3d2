"""What makes two records differ, and how a time is spelled for Harper's ranges."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.stores.harper.reading.record_comparison import (
    differing_columns,
    differing_values,
)
from bq_harper_assets.stores.harper.reading.target_rows import text_of
from bq_harper_assets.stores.harper.types import Form, HarperColumn
from bq_harper_assets.validation.subject import instant_of
from bq_harper_assets_tests.stores.small_tables import utc


def column(kind: Kind, form: Form, *, repeated: bool = False) -> HarperColumn:
    """Named c."""
    return HarperColumn(name="c", kind=kind, form=form, repeated=repeated)


NUMBER = column(Kind.FLOAT64, Form.NUMBER)
LIST = column(Kind.FLOAT64, Form.NUMBER, repeated=True)
TIME = column(Kind.TIMESTAMP, Form.TEXT)
NOON_TEXT = "2026-01-05T12:00:00.000000Z"


@pytest.mark.parametrize(
    ("source", "target", "one"),
    [
        ({"c": 1}, {"c": 1.0}, NUMBER),
        ({"c": 0.0}, {"c": -0.0}, NUMBER),
        ({"c": None}, {}, NUMBER),
        ({"c": []}, {"c": None}, LIST),
        ({"c": NOON_TEXT}, {"c": NOON_TEXT, "other": 1, "_hash": "x"}, TIME),
    ],
)
def test_values_that_mean_the_same_do_not_differ(
    source: dict[str, Any], target: dict[str, Any], one: HarperColumn
) -> None:
    assert differing_columns(source, target, [one]) == {}


@pytest.mark.parametrize(
    ("source", "target", "one"),
    [
        ({"c": 1}, {"c": 1.5}, NUMBER),
        ({"c": 0}, {"c": None}, NUMBER),
        ({"c": 1}, {"c": "1"}, NUMBER),
        ({"c": "x"}, {"c": "y"}, NUMBER),
        ({"c": "x"}, {"c": None}, NUMBER),
        ({"c": [1, 2]}, {"c": [2, 1]}, LIST),
        ({"c": NOON_TEXT}, {"c": "2026-01-05T12:00:00Z"}, TIME),
    ],
)
def test_a_column_that_differs_is_named_with_both_values(
    source: dict[str, Any], target: dict[str, Any], one: HarperColumn
) -> None:
    assert differing_columns(source, target, [one]) == {"c": (source["c"], target["c"])}


def test_a_row_that_the_source_has_must_not_be_marked_as_deleted() -> None:
    assert differing_columns({"c": 1}, {"c": 1, "_deletedAt": None}, [NUMBER]) == {}
    marked = {"c": 1, "_deletedAt": NOON_TEXT}
    assert differing_columns({"c": 1}, marked, [NUMBER]) == {"_deletedAt": (None, NOON_TEXT)}


@pytest.mark.parametrize(
    ("kind", "moment", "text"),
    [
        (Kind.TIMESTAMP, utc(2026, 1, 5, 12), NOON_TEXT),
        (Kind.DATETIME, utc(2026, 1, 5, 12), "2026-01-05T12:00:00.000000"),
        (Kind.DATE, utc(2026, 1, 5), "2026-01-05"),
        (Kind.DATE, utc(2026, 1, 5, 0, 0, 0, 1), "2026-01-06"),
    ],
)
def test_a_bound_is_the_first_text_at_or_after_its_instant(
    kind: Kind, moment: datetime, text: str
) -> None:
    assert text_of(kind, moment) == text
    assert instant_of(kind, text) >= moment
    assert text_of(kind, instant_of(kind, text)) == text


def test_attributes_that_no_sync_wrote_differ_where_all_are_compared() -> None:
    plan = RowPlan(columns=(NUMBER,), timestamp="c")
    wanted, held = {"c": 1}, {"c": 2, "z": 3, "known": 4, "y": [5], "_hash": "x"}
    assert differing_values(wanted, held, plan) == {"c": (1, 2)}
    found = differing_values(wanted, held, replace(plan, others=frozenset({"known"})))
    assert list(found.items()) == [("c", (1, 2)), ("y", (None, [5])), ("z", (None, 3))]
    same = {"c": 1, "z": None}
    assert differing_values(wanted, same, replace(plan, others=frozenset())) == {}
