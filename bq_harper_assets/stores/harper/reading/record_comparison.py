"""Compares one record of Harper with what it should be, column by column."""

from collections.abc import Mapping, Sequence
from typing import Any

from bq_harper_assets.contract.identifiers import DELETED_AT
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.stores.harper.errors import UnreadableValue
from bq_harper_assets.stores.harper.reading.deep_hash import compared_values
from bq_harper_assets.stores.harper.reading.from_harper import from_harper
from bq_harper_assets.stores.harper.types import HarperColumn


def differing_columns(
    expected: Mapping[str, Any], actual: Mapping[str, Any], columns: Sequence[HarperColumn]
) -> dict[str, tuple[Any, Any]]:
    """Finds the columns whose values differ; gives (source, target) as Harper stores them."""
    found = {
        column.name: (expected.get(column.name), actual.get(column.name))
        for column in columns
        if _meaning(expected.get(column.name), column) != _meaning(actual.get(column.name), column)
    }
    # A row that the source has must not be marked as gone from it.
    if actual.get(DELETED_AT) is not None:
        found[DELETED_AT] = (None, actual[DELETED_AT])
    return found


def differing_values(
    expected: Mapping[str, Any], actual: Mapping[str, Any], plan: RowPlan
) -> dict[str, tuple[Any, Any]]:
    """Does what differing_columns() does, and finds what a plan with other paths compares too."""
    found = differing_columns(expected, actual, plan.columns)
    if plan.others is not None:
        wanted, held = compared_values(expected, plan), compared_values(actual, plan)
        for name in sorted(wanted.keys() | held.keys()):
            if name not in found and wanted.get(name) != held.get(name):
                found[name] = (expected.get(name), actual.get(name))
    return found


def _meaning(value: Any, column: HarperColumn) -> Any:
    """Reads a stored value, so that a missing array equals an empty one, and 1 equals 1.0.

    A value that cannot be read equals only itself.
    """
    try:
        return from_harper(value, column)
    except UnreadableValue:
        return ("unreadable", repr(value))
