"""Versions as a story: a source's schemas one after another, each seen once."""

from typing import Any

from bq_harper_assets.schema.change import Change
from bq_harper_assets.schema.changes import changes_between
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets_tests.schema.samples import contract, schema

NUMBER = Column(name="number", kind=Kind.INT64)


def seen(
    before: TableVersion | None, *columns: Column, layout: Any = None, **declared: Any
) -> TableVersion:
    """The version after a look at a source of these columns, of rows with a number as key."""
    source = schema(NUMBER, *columns, **(layout or {}))
    return harper_plan(contract(**{"key": ("number",)} | declared), source, before).version


def story(*schemas: tuple[Column, ...], **declared: Any) -> TableVersion:
    """The version after all of them."""
    version: TableVersion | None = None
    for columns in schemas:
        version = seen(version, *columns, **declared)
    assert version is not None
    return version


def states(version: TableVersion) -> dict[str, str]:
    """Of each attribute, but for the time and the key that all have."""
    known = ("event_time", "number")
    return {
        column.name: column.state.value for column in version.columns if column.name not in known
    }


def told(before: TableVersion | None, after: TableVersion, **declared: Any) -> list[Change]:
    """What a person hears of the step."""
    return list(changes_between(before, after, contract(**{"key": ("number",)} | declared)))


def of(name: str, kind: Kind, *fields: Column, **more: Any) -> Column:
    """A column of the source."""
    return Column(name=name, kind=kind, fields=fields, **more)
