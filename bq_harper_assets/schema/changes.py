"""Lists what differs between two versions of a schema, and what a version leaves to a person.

Descriptions, the order of the columns and the clustering are recorded but are no changes: no row
depends on them, and an index that follows from the clustering is a change of its own.
"""

from collections.abc import Iterator
from dataclasses import replace

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.change import Change, ChangeKind, SchemaDifference
from bq_harper_assets.schema.change_words import change_in_words
from bq_harper_assets.schema.version import State, TableVersion, VersionColumn


def changes_between(
    before: TableVersion | None, after: TableVersion, contract: TableContract
) -> tuple[Change, ...]:
    """Lists what `after` changes, in the order of its columns; a first version changes nothing."""
    if before is None:
        return ()
    found = (*_column_differences(before, after), *_table_differences(before, after))
    return tuple(change_in_words(each, contract) for each in found)


def waiting_changes(version: TableVersion, contract: TableContract) -> tuple[Change, ...]:
    """Lists the changes that a version leaves to a person."""
    return tuple(change_in_words(_waiting(version, column), contract) for column in version.waiting)


def _waiting(version: TableVersion, column: VersionColumn) -> SchemaDifference:
    if column.is_live:
        return _offer(column)
    rivals = [each for each in version.of_source(column.source.name) if each.name != column.name]
    kind = ChangeKind.RETYPED if rivals else ChangeKind.ADDED
    before = ", ".join(rival.type_text for rival in rivals)
    return SchemaDifference(
        kind=kind,
        column=column.source.name,
        types=(before, column.type_text),
        now=column,
        waits=True,
    )


def _offer(column: VersionColumn) -> SchemaDifference:
    """Gives the fields that the source has added to a column which is still synced without them."""
    types = column.type_text, column.in_source.type_text
    return SchemaDifference(
        kind=ChangeKind.WIDENED, column=column.source.name, types=types, now=column, waits=True
    )


def _column_differences(before: TableVersion, after: TableVersion) -> Iterator[SchemaDifference]:
    for column in after.columns:
        was = before.find(column.name)
        if column.state is State.RETIRED:
            if was is not None and was.state is not State.RETIRED:
                yield from _retired(was, column, after)
        elif was is None:
            yield _arrived(column, before, after)
        else:
            yield from _stayed(was, column)
    for was in before.columns:
        if not was.written and not any(after.of_source(was.source.name)):
            yield SchemaDifference(
                kind=ChangeKind.REMOVED, column=was.source.name, types=(was.type_text, ""), was=was
            )


def _retired(
    was: VersionColumn, column: VersionColumn, after: TableVersion
) -> Iterator[SchemaDifference]:
    # A renamed column is found by its new name.
    if any(each.state is not State.RETIRED for each in after.of_source(column.source.name)):
        return  # its successor reports the change
    left_out = was.source.name in after.not_selected
    kind = ChangeKind.NOT_SELECTED if left_out else ChangeKind.REMOVED
    yield SchemaDifference(kind=kind, column=was.source.name, types=(was.type_text, ""), was=was)


def _arrived(column: VersionColumn, before: TableVersion, after: TableVersion) -> SchemaDifference:
    # The same column of the source may have had another name until now.
    names = {each.name for each in after.of_source(column.source.name)}
    same = (
        each
        for each in before.columns
        if each.source.name == column.source.name or each.name in names
    )
    # A version lists the newest column first.
    old = next((each for each in same if each.written), None)
    kind = ChangeKind.RETYPED if old else ChangeKind.ADDED
    types = old.type_text if old else "", column.type_text
    return SchemaDifference(
        kind=kind,
        column=column.source.name,
        types=types,
        was=old,
        now=column,
        waits=not column.is_live,
    )


def _stayed(was: VersionColumn, column: VersionColumn) -> Iterator[SchemaDifference]:
    name = column.source.name
    if was.source.name != name:
        yield SchemaDifference(
            kind=ChangeKind.RENAMED, column=name, types=(was.source.name, name), was=was, now=column
        )
    if was.state is not column.state:
        kind = ChangeKind.APPLIED if column.is_live else ChangeKind.SET_ASIDE
        if was.state is State.RETIRED:
            kind = ChangeKind.RETURNED
        types = "", column.type_text
        yield SchemaDifference(
            kind=kind, column=name, types=types, was=was, now=column, waits=not column.is_live
        )
    sizes = _sized(was), _sized(column)
    if sizes[0] != sizes[1]:
        yield SchemaDifference(
            kind=ChangeKind.WIDENED, column=name, types=sizes, was=was, now=column
        )
    else:
        yield from _modes(was, column, name)
    offers = [each.in_source.type_text for each in (was, column)]
    if column.is_live and column.offered and offers[0] != offers[1]:
        yield _offer(column)
    yield from _taken_back(was.in_source, column.in_source, name)
    if was.is_live and column.is_live and was.indexed != column.indexed:
        states = ("not indexed", "indexed") if column.indexed else ("indexed", "not indexed")
        yield SchemaDifference(
            kind=ChangeKind.INDEX, column=name, types=states, was=was, now=column
        )


def _taken_back(was: VersionColumn, column: VersionColumn, path: str) -> Iterator[SchemaDifference]:
    """Yields the fields that the source had in the column and took back before they were synced.

    A column that lost a field which was synced does not stay: it has a successor.
    """
    has = {field.name: field for field in column.fields}
    for field in was.fields:
        below = f"{path}.{field.name}"
        if field.name in has:
            yield from _taken_back(field, has[field.name], below)
        else:
            yield SchemaDifference(
                kind=ChangeKind.REMOVED,
                column=below,
                types=(field.type_text, ""),
                was=replace(field, written=False),
            )


def _modes(was: VersionColumn, column: VersionColumn, path: str) -> Iterator[SchemaDifference]:
    if was.mode != column.mode:
        yield SchemaDifference(kind=ChangeKind.MODE, column=path, types=(was.mode, column.mode))
    had = {field.name: field for field in was.fields}
    for field in column.fields:
        yield from _modes(had[field.name], field, f"{path}.{field.name}")


def _sized(column: VersionColumn) -> str:
    """Gives the column's type with the lengths that the source declares, for nested fields too."""
    length = f"({column.max_length})" if column.max_length else ""
    fields = ", ".join(f"{each.name} {_sized(each)}" for each in column.fields)
    single = replace(column, repeated=False)
    name = f"STRUCT<{fields}>" if fields else f"{single.type_text}{length}"
    return f"ARRAY<{name}>" if column.repeated else name


def _table_differences(before: TableVersion, after: TableVersion) -> Iterator[SchemaDifference]:
    """Yields differences in the table's layout and in the columns that the contract leaves out."""
    old, new = before.layout, after.layout
    for kind, was, now in (
        (ChangeKind.PARTITIONING, old.partition_field or "", new.partition_field or ""),
        (ChangeKind.PRIMARY_KEY, ", ".join(old.primary_key), ", ".join(new.primary_key)),
    ):
        if was != now:
            yield SchemaDifference(kind=kind, column="", types=(was or "none", now or "none"))
    for name in after.not_selected:
        if name not in before.not_selected and not any(before.of_source(name)):
            yield SchemaDifference(kind=ChangeKind.NOT_SELECTED, column=name)
    for name in before.not_selected:
        if name not in after.not_selected and not any(after.of_source(name)):
            yield SchemaDifference(kind=ChangeKind.REMOVED, column=name)
