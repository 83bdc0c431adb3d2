"""Selects the contract's columns from the source's real schema, and checks that they fit."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from bq_harper_assets.contract.fields.column_lists import ALL_COLUMNS
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.errors import SchemaMismatch
from bq_harper_assets.schema.logical import NO_KEYS, TIME_KINDS, Column, TableSchema
from bq_harper_assets.schema.overrides import renamed_path
from bq_harper_assets.schema.target_types import TargetTypes
from bq_harper_assets.schema.version import TableVersion

PRIMARY_KEY = "id"
OTHER_PRIMARY_KEY = "_id"


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A selection is what is synced of a table; its key is empty if the whole row identifies it."""

    columns: tuple[Column, ...]
    timestamp: Column
    key: tuple[str, ...]
    primary_key: str  # the target's name of the id
    id_column: Column | None  # the column whose value is the id; None where ids are hashes


def select_columns(
    contract: TableContract,
    schema: TableSchema,
    types: TargetTypes,
    before: TableVersion | None = None,
) -> Selection:
    """Gives the contract's columns in the source's order.

    SchemaMismatch lists all that does not fit. A column that the version `before` had may be gone.
    Rows keep the key and the ids that they have in that version, whatever the source's primary key
    is by now.
    """
    key = contract.key or (before.key if before else schema.primary_key)
    known = {*_paths_so_far(before)} if before else set()
    problems = [*_problems(contract, schema, types, key, known)]
    if problems:
        raise SchemaMismatch(contract.id, problems)
    columns = _selected(contract, schema)
    by_name = {column.name: column for column in columns}
    only = by_name[key[0]] if len(key) == 1 else None
    id_column = only if only and types.is_id(only) else None
    timestamp = by_name[contract.timestamp_column]
    if before is not None:
        return Selection(
            columns=columns,
            timestamp=timestamp,
            key=key,
            primary_key=before.primary_key,
            id_column=id_column,
        )
    primary_key = PRIMARY_KEY
    if PRIMARY_KEY in by_name and not _is_stored_as_id(types, id_column):
        primary_key = OTHER_PRIMARY_KEY
    if primary_key == OTHER_PRIMARY_KEY and primary_key in by_name:
        problem = (
            "the source has columns id and _id, and neither can hold the row's id: rename one in"
            " customQuery (SELECT * EXCEPT (_id), _id AS ...)"
        )
        raise SchemaMismatch(contract.id, [problem])
    return Selection(
        columns=columns, timestamp=timestamp, key=key, primary_key=primary_key, id_column=id_column
    )


def _paths_so_far(before: TableVersion) -> Iterator[str]:
    """Yields the paths of all columns and fields that the source ever had, by their names there.

    Fields that wait are among them: an override may name one before somebody decides on it.
    """
    for column in before.columns:
        yield from column.in_source.named(column.source.name).paths


def _is_stored_as_id(types: TargetTypes, id_column: Column | None) -> bool:
    """Says whether the source's own `id`, as it is stored, can be the primary key."""
    if id_column is None or id_column.name != PRIMARY_KEY:
        return False
    return types.is_stored_as_id(id_column)


def _selected(contract: TableContract, schema: TableSchema) -> tuple[Column, ...]:
    if contract.columns == ALL_COLUMNS:
        return schema.columns
    wanted = {*contract.columns, *(contract.renames.get(name) for name in contract.columns)}
    return tuple(column for column in schema.columns if column.name in wanted)


def _problems(
    contract: TableContract,
    schema: TableSchema,
    types: TargetTypes,
    key: Sequence[str],
    known: Collection[str],
) -> Iterator[str]:
    if contract.columns != ALL_COLUMNS:
        for name in contract.columns:
            if name not in known and _at(renamed_path(name, contract), schema) is None:
                yield from _missing("columns", name, schema)
    selected = _selected(contract, schema)
    yield from _timestamp_problems(contract, schema)
    yield from _key_problems(contract, schema, key, selected)
    for column in selected:
        yield from _name_problems(column, types)
    yield from _override_problems(contract, schema, types, known)


def _missing(where: str, name: str, schema: TableSchema) -> Iterator[str]:
    names = [column.name for column in schema.columns]
    if name in names:
        return
    for other in names:
        if other.lower() == name.lower():
            yield f"{where}: {name} is spelled {other} in the source; spell it alike"
            return
    yield f"{where}: the source has no column {name}; it has {', '.join(names)}"


def _timestamp_problems(contract: TableContract, schema: TableSchema) -> Iterator[str]:
    name = contract.timestamp_column
    found = next((column for column in schema.columns if column.name == name), None)
    if found is not None and found.kind in TIME_KINDS and not found.repeated:
        return
    fitting = [c.name for c in schema.columns if c.kind in TIME_KINDS and not c.repeated]
    kinds = "TIMESTAMP, DATETIME or DATE"
    candidates = (
        f"candidates are {', '.join(fitting)}"
        if fitting
        else f"the source has no such column: make one in customQuery, a {kinds}"
    )
    if found is None:
        yield f"timestampColumn: the source has no column {name}; {candidates}"
    else:
        yield f"timestampColumn: {name} is {type_text(found)}, not {kinds}; {candidates}"


def _key_problems(
    contract: TableContract,
    schema: TableSchema,
    key: Sequence[str],
    selected: tuple[Column, ...],
) -> Iterator[str]:
    names = {column.name for column in selected}
    for name in key:
        if contract.key is None and name in schema.primary_key and name not in names:
            whole = ", ".join(key)
            yield (
                f"columns: leaves out {name} of {contract.source.store}'s primary key ({whole});"
                " add it"
            )
        else:
            yield from _missing("key", name, schema)
    for column in selected:
        if column.name not in key:
            continue
        if column.repeated or column.kind in NO_KEYS:
            yield f"key: {column.name} is {type_text(column)}, whose values cannot identify a row"


def _name_problems(column: Column, types: TargetTypes) -> Iterator[str]:
    if why := types.refusal_of_column(column.name):
        yield (
            f"column {column.name}: {why}. Leave it out by listing the others in columns, or rename"
            f" it in customQuery (SELECT * EXCEPT ({column.name}), {column.name} AS ...)"
        )
    yield from _field_problems(column, column.name, types)


def _field_problems(column: Column, path: str, types: TargetTypes) -> Iterator[str]:
    for field in column.fields:
        below = f"{path}.{field.name}"
        if why := types.refusal_of_field(field.name):
            yield f"field {below}: {why}. Rename it in customQuery"
        yield from _field_problems(field, below, types)


def _override_problems(
    contract: TableContract, schema: TableSchema, types: TargetTypes, known: Collection[str]
) -> Iterator[str]:
    for path, override in contract.schema_overrides.items():
        found = _at(path, schema) or _at(renamed_path(path, contract), schema)
        if found is None:
            if path not in known:
                yield from _no_such_path(path, schema)
        elif why := types.impossible_override(found, override):
            yield f"schemaOverrides: {path} {why}"
        elif "." in path and override.indexed is not None:
            yield (
                f"schemaOverrides: {path} is inside {path.split('.')[0]}, and"
                f" {contract.target.store} indexes whole attributes only; take indexed out"
            )
        elif path == contract.timestamp_column and override.indexed is False:
            yield (
                f"schemaOverrides: {path} is the timestampColumn, by whose index windows are read"
                " back; take indexed: false out"
            )


def _at(path: str, schema: TableSchema) -> Column | None:
    """Finds the column or nested field at a path; None if there is none."""
    columns, found = schema.columns, None
    for name in path.split("."):
        found = next((column for column in columns if column.name == name), None)
        columns = found.fields if found else ()
    return found


def _no_such_path(path: str, schema: TableSchema) -> Iterator[str]:
    above, _, name = path.rpartition(".")
    if not above:
        yield from _missing("schemaOverrides", name, schema)
        return
    parent = _at(above, schema)
    if parent is None:
        yield f"schemaOverrides: {path}: the source has no {above}"
    elif not parent.fields:
        yield f"schemaOverrides: {path}: {above} is {type_text(parent)}, which has no fields"
    else:
        fields = ", ".join(field.name for field in parent.fields)
        yield f"schemaOverrides: {path}: {above} has no field {name}; it has {fields}"


def type_text(column: Column) -> str:
    """Gives the source's type as a user knows it: ARRAY<INT64>."""
    name = column.spelling or column.kind
    return f"ARRAY<{name}>" if column.repeated else name
