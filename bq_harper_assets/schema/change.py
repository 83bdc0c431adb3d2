"""A difference between two versions of a schema is data; a change is the same with its words."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from bq_harper_assets.schema.version import VersionColumn


class ChangeKind(StrEnum):
    """A change kind says what happened to a column or to the table."""

    ADDED = "added"
    RETURNED = "returned"
    REMOVED = "removed"
    RETYPED = "retyped"
    RENAMED = "renamed"
    WIDENED = "widened"  # the target stores both types alike
    MODE = "mode"
    INDEX = "index"
    APPLIED = "applied"  # what waited is synced from now on
    SET_ASIDE = "set_aside"  # a rollback stopped its sync
    NOT_SELECTED = "not_selected"
    PARTITIONING = "partitioning"
    PRIMARY_KEY = "primary_key"


@dataclass(frozen=True, kw_only=True)
class SchemaDifference:
    """A schema difference is what differs in one column or in the whole table, not yet in words."""

    kind: ChangeKind
    column: str  # as the source calls it; empty where the table as a whole changed
    types: tuple[str, str] = ("", "")  # the types before and now, or the modes, names or layouts
    was: VersionColumn | None = None
    now: VersionColumn | None = None
    waits: bool = False  # it has no effect until a person decides


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change is one difference between two schema versions, with the words for what is done."""

    kind: ChangeKind
    column: str  # as the source calls it; empty where the table as a whole changed
    before: str
    after: str
    action: str
    severity: str = "info"  # info, warn (a person should check it), error (it is not followed)

    def body(self) -> dict[str, Any]:
        """Returns the change as JSON."""
        return {
            "kind": self.kind.value,
            "column": self.column,
            "before": self.before,
            "after": self.after,
            "action": self.action,
            "severity": self.severity,
        }

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> "Change | None":
        """Makes a change of what body() returned, or None for a kind that is no longer recorded.

        Earlier releases recorded the order of the columns, their descriptions and the clustering as
        changes; nobody acted on them. They also rolled back single fields.
        """
        if body["kind"] not in set(ChangeKind):
            return None
        change = cls(**{**body, "kind": ChangeKind(body["kind"])})
        column, dot, _ = change.column.partition(".")
        if change.kind is ChangeKind.SET_ASIDE and dot:
            # Its recorded words name a command, but since that release no single field waits.
            action = (
                "a rollback by an earlier release stopped its sync; this release syncs it again"
                f" with the rest of {column}"
            )
            return replace(change, action=action)
        return change

    def __str__(self) -> str:
        what = " ".join(part for part in (self.column, self.kind.replace("_", " ")) if part)
        types = " -> ".join(part for part in (self.before, self.after) if part)
        return f"{what} ({types}): {self.action}" if types else f"{what}: {self.action}"
