"""Schema versions and what differs between them, for people and for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.records import SchemaVersion
from bq_harper_assets.schema.change import Change, ChangeKind
from bq_harper_assets.schema.harper_types import NATIVE, Form, fallback_warnings
from bq_harper_assets.schema.version import State, TableVersion, VersionColumn

LISTS = {
    "addedColumns": (ChangeKind.ADDED, ChangeKind.RETURNED, ChangeKind.APPLIED),
    "typeChanges": (ChangeKind.RETYPED, ChangeKind.WIDENED),
    "indexChanges": (ChangeKind.INDEX,),
    "removedColumns": (ChangeKind.REMOVED, ChangeKind.SET_ASIDE),
    "renamed": (ChangeKind.RENAMED,),
    "other": (
        ChangeKind.MODE,
        ChangeKind.NOT_SELECTED,
        ChangeKind.PARTITIONING,
        ChangeKind.PRIMARY_KEY,
    ),
}
_SIGNS = {"addedColumns": "+", "removedColumns": "-"}  # all others: ~


def diff_lists(changes: Sequence[Change]) -> dict[str, list[dict[str, Any]]]:
    """Each change in the one list that it belongs to; all lists are there, if empty."""
    return {
        name: [change.body() for change in changes if change.kind in kinds]
        for name, kinds in LISTS.items()
    }


def change_lines(changes: Sequence[Change]) -> Iterator[str]:
    """Like lines of a diff."""
    for change in changes:
        name = next(name for name, kinds in LISTS.items() if change.kind in kinds)
        yield f"  {_SIGNS.get(name, '~')} {change}"


def title(contract: TableContract, recorded: SchemaVersion | None) -> str:
    """Of which version a text tells."""
    if recorded is None:
        return f"{contract.id} was never synced; its first sync records this as schema version 1"
    return f"{contract.id}, schema version {recorded.version}, recorded {origin(recorded)}"


def origin(recorded: SchemaVersion) -> str:
    """When, by whom and why."""
    by = f" by {recorded.by}" if recorded.by else ""
    cause = f": {recorded.cause}" if recorded.cause else ""
    return f"{when(recorded.recorded_at)}{by}{cause}"


def when(moment: datetime) -> str:
    return f"{moment:%F %T} UTC"


def recorded_json(recorded: SchemaVersion | None) -> dict[str, Any]:
    """Without its columns."""
    return {
        "version": recorded.version if recorded else None,
        "recorded_at": recorded.recorded_at.isoformat() if recorded else None,
        "by": recorded.by if recorded else None,
        "cause": recorded.cause if recorded else None,
        "source_fingerprint": recorded.source_fingerprint if recorded else None,
    }


def layout_lines(version: TableVersion) -> Iterator[str]:
    """What is said of the table as a whole."""
    key = ", ".join(version.key) or "none: the whole row identifies itself"
    yield f"key: {key}; Harper's primary key: {version.primary_key}"
    layout = version.layout
    if layout.partition_field:
        yield f"partitioned by {layout.partition_field}"
    if layout.clustering:
        yield f"clustered by {', '.join(layout.clustering)}"
    if version.not_selected:
        names = ", ".join(version.not_selected)
        yield f"not synced, as the contract's columns do not name them: {names}"


def with_fields(
    columns: Sequence[VersionColumn], above: str = ""
) -> Iterator[tuple[str, VersionColumn]]:
    """Each with the path that the source has it under: trip, trip.from."""
    for column in columns:
        path = f"{above}{column.source}"
        yield path, column
        yield from with_fields(column.fields, f"{path}.")


def column_row(path: str, column: VersionColumn) -> tuple[str, ...]:
    """Under COLUMN_HEADER."""
    is_field = "." in path
    return (
        path,
        column.type_text,
        column.mode,
        "" if is_field else column.name,
        "" if is_field else column.stored.type.value,
        "yes" if column.indexed else "",
        "" if column.state is State.LIVE else column.state.value,
        column.description,
    )


COLUMN_HEADER = ("column", "type", "mode", "attribute", "Harper", "index", "state", "description")


def storage_note(column: VersionColumn) -> str:
    """Why a column is not stored as its type has it; empty if it is."""
    alone = replace(column.logical, fields=())
    if warning := next(fallback_warnings((alone,)), None):
        return warning.partition(", ")[2]
    if column.form is Form.TEXT and column.kind in NATIVE:
        return "as text: schemaOverrides or values say so"
    return ""
