"""What differs between two versions of a schema, in the words of the person who has to know."""

from collections.abc import Iterator
from dataclasses import replace

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.change import Change, ChangeKind
from bq_harper_assets.schema.layout_changes import table_changes
from bq_harper_assets.schema.rename_hint import renamed_from
from bq_harper_assets.schema.schema_rules import policy_of
from bq_harper_assets.schema.version import State, TableVersion, VersionColumn


def changes_between(
    before: TableVersion | None, after: TableVersion, contract: TableContract
) -> tuple[Change, ...]:
    """In the order of the columns; none for the first version."""
    if before is None:
        return ()
    return (*_column_changes(before, after, contract), *table_changes(before, after))


def waiting_changes(version: TableVersion, contract: TableContract) -> tuple[Change, ...]:
    """What a version leaves to a person."""
    return tuple(
        change
        for column in version.waiting
        for change in (
            _fields_that_wait(column, contract)
            if column.is_live
            else [_column_that_waits(version, column, contract)]
        )
    )


def _column_that_waits(
    version: TableVersion, column: VersionColumn, contract: TableContract
) -> Change:
    return Change(
        ChangeKind.RETYPED if _rivals(version, column) else ChangeKind.ADDED,
        column.source,
        ", ".join(rival.type_text for rival in _rivals(version, column)),
        column.type_text,
        _waits(column, contract),
        "error" if policy_of(contract, column.source) == "freeze" else "warn",
    )


def _fields_that_wait(column: VersionColumn, contract: TableContract) -> Iterator[Change]:
    severity = "error" if policy_of(contract, column.source) == "freeze" else "warn"
    for path, field in _waiting_fields(column, column.source):
        action = _waits(replace(field, source=column.source), contract)
        yield Change(ChangeKind.ADDED, path, "", field.type_text, action, severity)


def _waiting_fields(column: VersionColumn, path: str) -> Iterator[tuple[str, VersionColumn]]:
    for field in column.fields:
        inner = f"{path}.{field.name}"
        if field.is_live:
            yield from _waiting_fields(field, inner)
        else:
            yield inner, field


def _rivals(version: TableVersion, column: VersionColumn) -> list[VersionColumn]:
    return [each for each in version.of_source(column.source) if each.name != column.name]


def _waits(column: VersionColumn, contract: TableContract) -> str:
    if policy_of(contract, column.source) == "freeze":
        if column.written:  # it is back, or was set aside
            return (
                "not synced: the policy is freeze; to sync it again write approve, then type:"
                f" bqh schema apply {contract.id}"
            )
        return "not synced: the policy is freeze, so change it or take the column back in BigQuery"
    return f"waits for: bqh schema apply {contract.id}"


def _column_changes(
    before: TableVersion, after: TableVersion, contract: TableContract
) -> Iterator[Change]:
    for column in after.columns:
        was = before.find(column.name)
        if column.state is State.RETIRED:
            if was is not None and was.state is not State.RETIRED:
                yield from _retired(was, column, after)
        elif was is None:
            yield _arrived(column, before, after, contract)
        else:
            yield from _stayed(was, column, contract)
    for was in before.columns:
        if not was.written and not any(after.of_source(was.source)):
            action = "it was never synced"
            yield Change(ChangeKind.REMOVED, was.source, was.type_text, "", action)


def _retired(was: VersionColumn, column: VersionColumn, after: TableVersion) -> Iterator[Change]:
    # By the name that a rename has given it.
    if any(each.state is not State.RETIRED for each in after.of_source(column.source)):
        return  # told where its successor arrives
    if was.source in after.not_selected:
        action = "left out from now on: the contract's columns do not name it any more"
        action += f"; Harper keeps the values of {was.name}"
        yield Change(ChangeKind.NOT_SELECTED, was.source, was.type_text, "", action, "warn")
        return
    yield Change(
        ChangeKind.REMOVED,
        was.source,
        was.type_text,
        "",
        f"left out from now on; Harper keeps the values of {was.name}",
        "warn",
    )


def _arrived(
    column: VersionColumn, before: TableVersion, after: TableVersion, contract: TableContract
) -> Change:
    # Versions list the newest first.
    old = next((each for each in _predecessors(column, before, after) if each.written), None)
    kind = ChangeKind.RETYPED if old else ChangeKind.ADDED
    severity = "warn" if old else "info"
    if column.state is State.WAITING:
        freeze = policy_of(contract, column.source) == "freeze"
        severity = "error" if freeze else "warn"
        action = _waits(column, contract)
        if old:
            action += f"; {old.name} keeps its values and gets no new ones"
    else:
        action = f"synced into {column.name}{_since_when(contract)}"
        if old:
            action += (
                f"; {old.name} keeps the values it has, and is listed by"
                f" bqh schema cleanup {contract.id}"
            )
    if old and (lost := _lost_fields(old, column)):
        action = f"without {', '.join(lost)}; {action}"
    if old and old.source != column.source:
        action = f"renamed from {old.source}; {action}"
    if not old and (hint := renamed_from(column, before, after)):
        action += (
            f". It has the type and place of {hint.source}, which is gone: if it was renamed, write"
            f" renames: {{{hint.source}: {column.source}}}"
        )
        severity = "warn"
    return Change(
        kind, column.source, old.type_text if old else "", column.type_text, action, severity
    )


def _lost_fields(old: VersionColumn, column: VersionColumn) -> list[str]:
    """Fields that an object of this column had and has no more, by the source's own path."""
    if not old.fields or not column.fields:
        return []
    had, has = (replace(each, name=column.source).paths for each in (old, column))
    return sorted(had - has)


def _predecessors(
    column: VersionColumn, before: TableVersion, after: TableVersion
) -> Iterator[VersionColumn]:
    """What `before` had of the same column of the source, also under a name it had until now."""
    names = {each.name for each in after.of_source(column.source)}
    return (each for each in before.columns if each.source == column.source or each.name in names)


def _since_when(contract: TableContract) -> str:
    return "; windows synced before are filled again" if contract.backfill else " from now on"


def _stayed(was: VersionColumn, column: VersionColumn, contract: TableContract) -> Iterator[Change]:
    name = column.source
    if was.source != column.source:
        action = f"Harper keeps it as {column.name}"
        yield Change(ChangeKind.RENAMED, name, was.source, name, action)
    if was.state is not column.state:
        yield _moved(was, column, contract)
    before, after = _sized(_still_synced(was, column)), _sized(column)
    if before != after:
        action = "recorded: Harper stores both alike"
        if new := sorted(column.paths - was.paths):
            action = f"synced into {', '.join(new)}{_since_when(contract)}"
        yield Change(ChangeKind.WIDENED, name, before, after, action)
    else:
        yield from _mode_changes(was, column, name)
    if was.is_live and column.is_live:
        waited = dict(_waiting_fields(was, name))
        synced = replace(was, name=name).paths
        for change in _fields_that_wait(column, contract):
            if change.column in synced:
                yield replace(change, kind=ChangeKind.SET_ASIDE)
            elif change.column not in waited:
                yield change
        still = {*dict(_waiting_fields(column, name)), *replace(column, name=name).paths}
        for path, field in waited.items():
            if path not in still:
                action = "it was never synced"
                yield Change(ChangeKind.REMOVED, path, field.type_text, "", action)
    if was.is_live and column.is_live and was.indexed != column.indexed:
        yield _index_changed(column, contract)
    described = _described(column)
    if any(described.get(path, text) != text for path, text in _described(was).items()):
        yield Change(ChangeKind.DESCRIPTION, name, "", "", "recorded")


def _index_changed(column: VersionColumn, contract: TableContract) -> Change:
    if not column.indexed:
        action = "the index stays in Harper"
        return Change(ChangeKind.INDEX, column.source, "indexed", "not indexed", action, "warn")
    # Measured: what was declared without an index gets none; what rows merely hold gets one.
    action = (
        "Harper builds it at the next sync if the column came after the table was made; to an older"
        " one it adds none, and searches by it read the whole table"
    )
    if contract.manage == "adopt":
        action = "Harper has one only if the table is declared with it"
    action += f". See: bqh schema indexes {contract.id}"
    return Change(ChangeKind.INDEX, column.source, "not indexed", "indexed", action, "warn")


def _moved(was: VersionColumn, column: VersionColumn, contract: TableContract) -> Change:
    types = ("", column.type_text)
    if was.state is State.RETIRED:
        if column.state is State.WAITING:
            return Change(
                ChangeKind.RETURNED, column.source, *types, _waits(column, contract), "warn"
            )
        action = (
            f"synced into {column.name} again: windows synced before it went follow BigQuery"
            " again, those synced while it was gone keep what they have"
        )
        if contract.backfill:
            action = f"synced into {column.name} again, in earlier windows too"
        return Change(ChangeKind.RETURNED, column.source, *types, action, "warn")
    if column.state is State.LIVE:
        action = f"synced into {column.name}{_since_when(contract)}"
        return Change(ChangeKind.APPLIED, column.source, *types, action)
    return Change(ChangeKind.SET_ASIDE, column.source, *types, _waits(column, contract), "warn")


def _mode_changes(was: VersionColumn, column: VersionColumn, path: str) -> Iterator[Change]:
    if was.mode != column.mode:
        yield Change(ChangeKind.MODE, path, was.mode, column.mode, "recorded")
    had = {field.name: field for field in was.synced_fields}
    for field in column.synced_fields:
        yield from _mode_changes(had[field.name], field, f"{path}.{field.name}")


def _still_synced(was: VersionColumn, column: VersionColumn) -> VersionColumn:
    """Without the fields that were set aside since."""
    now = {field.name: field for field in column.synced_fields}
    kept = (field for field in was.synced_fields if field.name in now)
    return replace(was, fields=tuple(_still_synced(field, now[field.name]) for field in kept))


def _sized(column: VersionColumn) -> str:
    """Its type, with the lengths that the source declares for it and the fields inside it."""
    length = f"({column.max_length})" if column.max_length else ""
    fields = ", ".join(f"{each.name} {_sized(each)}" for each in column.synced_fields)
    single = replace(column, repeated=False)
    name = f"STRUCT<{fields}>" if fields else f"{single.type_text}{length}"
    return f"ARRAY<{name}>" if column.repeated else name


def _described(column: VersionColumn) -> dict[str, str]:
    """What the source says about it and the fields inside it, by path."""
    inner = {
        f"{field.name}.{path}": text
        for field in column.fields
        for path, text in _described(field).items()
    }
    return {"": column.description, **inner}
