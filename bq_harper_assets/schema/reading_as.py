"""Reads a record that was written under one schema version as a row of another version."""

from collections.abc import Mapping
from typing import Any

from bq_harper_assets.schema.conversions import absent, converted
from bq_harper_assets.schema.from_harper import from_harper
from bq_harper_assets.schema.version import TableVersion, VersionColumn


def as_version(
    record: Mapping[str, Any], written: TableVersion, wanted: TableVersion
) -> dict[str, Any]:
    """Gives the row with the names and types that the source had in version `wanted`.

    A column that the row was written without is None, or an empty array, whatever an older batch
    may have left in its attribute. A value that has no counterpart in the wanted type is None too.
    """
    return {column.source: _value(record, column, written, wanted) for column in wanted.live}


def _value(
    record: Mapping[str, Any], column: VersionColumn, written: TableVersion, wanted: TableVersion
) -> Any:
    holder = _holder(column, written, wanted)
    if holder is None:
        return absent(column)
    return converted(from_harper(record.get(holder.name), holder.stored), holder, column)


def _holder(
    column: VersionColumn, written: TableVersion, wanted: TableVersion
) -> VersionColumn | None:
    """Finds the column in which rows of `written` hold the values of a column of `wanted`."""
    itself = written.find(column.name)
    if itself is not None and itself.is_live:
        return itself
    return next((each for each in written.live if _are_one(each, column, written, wanted)), None)


def _are_one(
    each: VersionColumn, column: VersionColumn, written: TableVersion, wanted: TableVersion
) -> bool:
    """Says whether both are the same source column, by the version that knows both attributes.

    The name alone is not enough: since a rename it may belong to another column.
    """
    own = wanted.find(each.name)
    if own is not None and own.is_live:
        return False
    if (known := written.find(column.name)) is not None:
        return each.source == known.source
    # The later of two versions has all attributes of the earlier one.
    return own is not None and own.source == column.source
