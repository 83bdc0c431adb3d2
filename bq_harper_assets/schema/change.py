"""One difference between two versions of a schema, and what is done about it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any


class ChangeKind(StrEnum):
    """What happened to a column or to the table."""

    ADDED = "added"
    RETURNED = "returned"
    REMOVED = "removed"
    RETYPED = "retyped"
    RENAMED = "renamed"
    WIDENED = "widened"  # Harper stores both types alike
    MODE = "mode"
    INDEX = "index"
    APPLIED = "applied"  # what waited is synced from now on
    SET_ASIDE = "set_aside"  # by a rollback
    NOT_SELECTED = "not_selected"
    PARTITIONING = "partitioning"
    PRIMARY_KEY = "primary_key"


@dataclass(frozen=True, kw_only=True)
class Change:
    """One difference, with the words that say what is done about it."""

    kind: ChangeKind
    column: str  # as the source calls it; empty where the table as a whole changed
    before: str
    after: str
    action: str
    severity: str = "info"  # info, warn (a person should look), error (it is not followed)

    def body(self) -> dict[str, Any]:
        """As JSON."""
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
        """What body() gave; None for a kind that only earlier releases told, as nobody acted on it.

        These were the order of the columns, their descriptions and the clustering.
        """
        if body["kind"] not in set(ChangeKind):
            return None
        return cls(**{**body, "kind": ChangeKind(body["kind"])})

    def __str__(self) -> str:
        what = " ".join(part for part in (self.column, self.kind.replace("_", " ")) if part)
        types = " -> ".join(part for part in (self.before, self.after) if part)
        return f"{what} ({types}): {self.action}" if types else f"{what}: {self.action}"


def dated(change: Change, at: datetime) -> Change:
    """A column that is gone is told with the time since when: rows written later lack it."""
    if change.kind is not ChangeKind.REMOVED or change.severity != "warn":
        return change
    return replace(change, action=f"gone since {at:%F %T} UTC; {change.action}")
