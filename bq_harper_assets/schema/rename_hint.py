"""Which column a new one may be under another name: never guessed, only hinted at."""

from collections.abc import Collection

from bq_harper_assets.schema.version import State, TableVersion, VersionColumn


def renamed_from(
    column: VersionColumn, before: TableVersion, after: TableVersion
) -> VersionColumn | None:
    """A column that went when this one came, of the same type and at the same place."""
    stayed = before.live_names & after.live_names
    went = [c for c in before.live if _is_retired(after.find(c.name))]
    came = [c for c in after.columns if before.find(c.name) is None]
    alike = (column.type_text, column.form, _neighbours(column, after, stayed))
    old = [c for c in went if (c.type_text, c.form, _neighbours(c, before, stayed)) == alike]
    new = [c for c in came if (c.type_text, c.form, _neighbours(c, after, stayed)) == alike]
    # One for one in their order, or nothing can be said.
    return old[new.index(column)] if column in new and len(old) == len(new) else None


def _is_retired(column: VersionColumn | None) -> bool:
    return column is not None and column.state is State.RETIRED


def _neighbours(
    column: VersionColumn, version: TableVersion, stayed: Collection[str]
) -> tuple[str | None, str | None]:
    """The columns before and after it that stayed where they were."""
    place = version.columns.index(column)
    left = (c.name for c in reversed(version.columns[:place]) if c.name in stayed)
    right = (c.name for c in version.columns[place:] if c.name in stayed)
    return next(left, None), next(right, None)
