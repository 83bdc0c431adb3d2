"""The `bqh schema` commands tell of versions, and of what changed, in these words."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from bq_harper_assets.schema.change import Change, ChangeKind

if TYPE_CHECKING:
    from bq_harper_assets.ledger.records import SchemaVersion

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


def tell(table: str, **told: Any) -> None:
    """Prints JSON for programs."""
    click.echo(json.dumps({"table": table, **told}, indent=2))


def diff_lists(changes: Sequence[Change]) -> dict[str, list[dict[str, Any]]]:
    """Puts each change into the list that it belongs to; all lists are there, even if empty."""
    return {
        name: [change.body() for change in changes if change.kind in kinds]
        for name, kinds in LISTS.items()
    }


def change_lines(changes: Sequence[Change]) -> Iterator[str]:
    """Writes each change as a line of a diff."""
    for change in changes:
        name = next(name for name, kinds in LISTS.items() if change.kind in kinds)
        yield f"  {_SIGNS.get(name, '~')} {change}"


def origin(recorded: "SchemaVersion") -> str:
    """Says when, by whom and why a version was recorded."""
    by = f" by {recorded.by}" if recorded.by else ""
    cause = f": {recorded.cause}" if recorded.cause else ""
    return f"{when(recorded.recorded_at)}{by}{cause}"


def when(moment: datetime) -> str:
    return f"{moment:%F %T} UTC"


def recorded_json(recorded: "SchemaVersion | None") -> dict[str, Any]:
    """Returns a recorded version without its columns, as JSON."""
    return {
        "version": recorded.version if recorded else None,
        "recorded_at": recorded.recorded_at.isoformat() if recorded else None,
        "by": recorded.by if recorded else None,
        "cause": recorded.cause if recorded else None,
        "source_fingerprint": recorded.source_fingerprint if recorded else None,
    }
