"""Makes the next version of a schema: no written value is lost, and no column mixes types.

A new column is synced, a removed one is retired and keeps its values, and one whose type changed
gets a successor: speed, speed_v2, speed_v3. Where the policy is not to follow the source by itself,
what is new waits. What is gone or no longer fits is left out under every policy, because it cannot
be read.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bq_harper_assets.schema.logical import OF_SEVERAL_TYPES, WIDER_KINDS, Spelling
from bq_harper_assets.schema.version import State, TableVersion, VersionColumn

_NUMBERED = re.compile(r"(?P<base>.+)_v(?P<number>[2-9]|[1-9]\d+)")


@dataclass(frozen=True)
class Rules:
    """The rules are what the contract says about following the source's changes."""

    follows: Callable[[str], bool]  # whether this source column changes without a person's decision
    renames: Mapping[str, str]  # the old name by the new name
    reserved: Collection[str] = ()  # names that no column may have in the target: id, _hash


def holds(before: VersionColumn, after: VersionColumn) -> bool:
    """Says whether `before` can hold the values of `after`, as the target stores both alike."""
    if not _is_stored_alike(before.target, after.target) or before.repeated != after.repeated:
        return False
    if after.kind not in (before.kind, WIDER_KINDS.get(before.kind)):
        return False
    if before.kind in OF_SEVERAL_TYPES and before.source.type != after.source.type:
        return False
    inner = {each.name: each for each in after.fields}
    # An upsert replaces a whole object, so without this field its old values would be lost.
    return all(each.name in inner and holds(each, inner[each.name]) for each in before.fields)


def _is_stored_alike(before: Spelling, after: Spelling) -> bool:
    return (before.type, before.form) == (after.type, after.form)


def evolve(
    before: TableVersion, found: Sequence[VersionColumn], rules: Rules
) -> tuple[VersionColumn, ...]:
    """Gives the columns of the next version, from the version `before` and what the source has."""
    sources = {column.source.name for column in found}
    # If the source still has the old column, it was not renamed.
    gone = {new: old for new, old in rules.renames.items() if old not in sources}
    rules = replace(rules, renames=gone)
    taken = {column.name for column in before.columns} | set(rules.reserved)
    # A name that is free so far may be the own name of another new column.
    new = (name for name in sources if not any(before.of_source(name)))
    taken |= {*new}
    kept: dict[str, VersionColumn] = {}
    for column in found:
        successor = _successor(before, column, rules, taken)
        kept[successor.name] = successor
        taken.add(successor.name)
    renamed = {old: new for new, old in gone.items() if new in sources}
    retired = (
        replace(
            column,
            state=State.RETIRED,
            # It gets the new name, so that it still counts as an attribute of this column.
            source=replace(column.source, name=renamed.get(column.source.name, column.source.name)),
            waited=column.source.name not in {*sources, *renamed}
            and _waited(before, column.source.name),
        )
        for column in before.columns
        if column.name not in kept and column.written
    )
    return (*kept.values(), *retired)


def _waited(before: TableVersion, *sources: str) -> bool:
    """Says whether such a column, or a change of it, still waits for a person's decision."""
    columns = [*before.of_source(*sources)]
    if any(column.is_live and not column.waits for column in columns):
        return False
    return any(column.waits or column.waited for column in columns)


def _successor(
    before: TableVersion, found: VersionColumn, rules: Rules, taken: Collection[str]
) -> VersionColumn:
    """Gives the column that takes the values of this source column from now on."""
    chosen = _place(before, found, rules)
    old = rules.renames.get(found.source.name)
    sources = (found.source.name, *([old] if old else []))
    goes_live = rules.follows(found.source.name) and not _waited(before, *sources)
    if chosen is None:
        return replace(
            found.named(_free_name(before, found, rules, taken)),
            state=State.LIVE if goes_live else State.WAITING,
            written=goes_live,
        )
    state = chosen.state
    if state is State.RETIRED:  # the column has come back
        state = State.LIVE if goes_live else State.WAITING
    follows = goes_live or not chosen.written
    fields = found.fields if follows else _known_fields(found, chosen)
    return replace(
        found.named(chosen.name),
        state=state,
        written=chosen.written,
        fields=fields,
        offered=() if fields == found.fields else found.fields,
    )


def _known_fields(found: VersionColumn, known: VersionColumn) -> tuple[VersionColumn, ...]:
    """Keeps the fields that `known` has too; all fields that are new wait as one change."""
    had = {field.name: field for field in known.fields}
    return tuple(
        replace(field, fields=_known_fields(field, had[field.name]))
        for field in found.fields
        if field.name in had
    )


def _place(before: TableVersion, found: VersionColumn, rules: Rules) -> VersionColumn | None:
    """Finds the column of `before` that continues; None if the found one needs a new attribute."""
    old = rules.renames.get(found.source.name)
    renamed = _newest(before.of_source(old)) if old is not None else None
    if renamed is not None and holds(renamed, found) and not _follows(before, found, renamed):
        return renamed
    same = [column for column in before.of_source(found.source.name) if holds(column, found)]
    for column in same:
        if column.state is not State.RETIRED:
            return column
    # An older attribute is not used again: its rows hold values that the source has long replaced.
    newest = _newest(before.of_source(found.source.name))
    return newest if newest in same else None


def _follows(before: TableVersion, found: VersionColumn, renamed: VersionColumn) -> bool:
    """Says whether the rename took effect earlier, so that it left only older types behind."""
    return any(_base(column) == _base(renamed) for column in before.of_source(found.source.name))


def _newest(columns: Iterator[VersionColumn]) -> VersionColumn | None:
    """Finds the newest of the columns that rows hold values of."""
    written = [column for column in columns if column.written]
    return max(written, key=_number, default=None)


def _free_name(
    before: TableVersion, found: VersionColumn, rules: Rules, taken: Collection[str]
) -> str:
    old = rules.renames.get(found.source.name)
    source = found.source.name
    earlier = [*before.of_source(source, *([old] if old else []))]
    if not earlier and source not in {c.name for c in before.columns} | set(rules.reserved):
        return source
    base = _base(min(earlier, key=_number)) if earlier else source
    number = max([1, *map(_number, earlier)]) + 1
    while f"{base}_v{number}" in taken:
        number += 1
    return f"{base}_v{number}"


def _number(column: VersionColumn) -> int:
    """Gives 2 for speed_v2 and 1 for speed; also 1 if the source itself calls a column speed_v2."""
    numbered = _NUMBERED.fullmatch(column.name)
    return int(numbered["number"]) if numbered and column.name != column.source.name else 1


def _base(column: VersionColumn) -> str:
    number = _number(column)
    return column.name.removesuffix(f"_v{number}") if number > 1 else column.name


def applied(before: TableVersion, columns: Collection[str] | None = None) -> TableVersion:
    """Makes waiting columns live: all of them, or those that have these names in the source."""
    return replace(
        before,
        columns=tuple(
            replace(column.in_source, state=State.LIVE, written=True)
            if column.waits and (columns is None or column.source.name in columns)
            else column
            for column in before.columns
        ),
    )


def rolled_back(newest: TableVersion, to: TableVersion) -> TableVersion:
    """Makes the columns of an earlier version live again, as far as the source still has them.

    Columns that came since then wait, so that the next comparison with the source does not bring
    them back; none is forgotten. Only whole columns are rolled back: without a field that came
    since, an upsert would lose the field's values.
    """
    wanted = to.live_names
    return replace(
        newest,
        columns=tuple(
            column
            if column.state is State.RETIRED
            else replace(column, state=State.LIVE, written=True)
            if column.name in wanted
            else replace(column, state=State.WAITING)
            for column in newest.columns
        ),
    )
