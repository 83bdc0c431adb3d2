"""A verdict says what a check found, in the words that users search for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """A severity says how much it matters that a check did not pass."""

    WARN = "warn"
    ERROR = "error"


class ProgressStatus(StrEnum):
    """A progress status says whether the sync keeps up."""

    HEALTHY = "healthy"
    LAGGING = "lagging"
    SEVERELY_LAGGING = "severely_lagging"
    STALLED = "stalled"
    NO_CHECKPOINT = "no_checkpoint"
    ROWS_WITHOUT_TIME = "rows_without_time"  # no window holds such rows, so they are never copied


class SmokeStatus(StrEnum):
    """A smoke status says whether a user's query finds recent rows."""

    HEALTHY = "healthy"
    NO_RECENT_DATA = "no_recent_data"
    QUERY_FAILED = "query_failed"
    TABLE_NOT_FOUND = "table_not_found"


class SpotStatus(StrEnum):
    """A spot status says whether rows picked at random are the same in both stores."""

    HEALTHY = "healthy"
    ISSUES_FOUND = "issues_found"
    NO_DATA = "no_data"
    CHECK_FAILED = "check_failed"


class ProofStatus(StrEnum):
    """A proof status says whether a cell, or each cell of a table, is the same in both stores."""

    PROVED = "proved"
    PARTLY_PROVED = "partly_proved"  # only for a table: some cells were not proved since their sync
    DIFFERS = "differs"
    OPEN = "open"  # equal so far, but rows may still arrive
    SOURCE_CHANGED = "source_changed"  # since its sync, and BigQuery has no past to compare with
    NOT_SYNCED = "not_synced"
    MOVING = "moving"  # a run is at work on it, or it is marked and waits for one
    CHECK_FAILED = "check_failed"


Status = ProgressStatus | SmokeStatus | SpotStatus | ProofStatus


class DifferenceKind(StrEnum):
    """A difference kind says what is wrong with a row."""

    MISSING = "missing"  # BigQuery has it, and Harper does not
    CHANGED = "changed"  # both have it, with different values
    PHANTOM = "phantom"  # Harper has it, and BigQuery does not
    LOST = "lost"  # Harper has it, but no window finds it


class Overall(StrEnum):
    """The overall outcome sums up all verdicts of a validation in one word."""

    HEALTHY = "healthy"
    ISSUES_DETECTED = "issues_detected"
    ERROR = "error"


@dataclass(frozen=True)
class Difference:
    """A difference is a row that differs between the stores; values are as Harper stores them."""

    kind: DifferenceKind
    id: str | int
    columns: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)  # (source, target)

    def __str__(self) -> str:
        values = ", ".join(f"{name}: {a!r} -> {b!r}" for name, (a, b) in self.columns.items())
        return f"{self.kind} {self.id}" + (f" ({values})" if values else "")

    def as_json(self) -> dict[str, Any]:
        """Returns the difference as JSON, for metadata and audit records."""
        columns = {name: list(values) for name, values in self.columns.items()}
        return {"kind": self.kind.value, "id": self.id, "columns": columns}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A verdict is the outcome of one check; `metadata` and `rows` can be written as JSON."""

    check: str
    status: Status
    passed: bool
    severity: Severity
    message: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[Difference, ...] = ()

    @property
    def could_not_look(self) -> bool:
        """Says whether a store did not answer the check, so that nothing is known."""
        return self.status in (
            SmokeStatus.QUERY_FAILED,
            SpotStatus.CHECK_FAILED,
            ProofStatus.CHECK_FAILED,
        )

    def as_json(self) -> dict[str, Any]:
        """Returns the verdict as JSON, for audit records."""
        return {
            "status": self.status.value,
            "passed": self.passed,
            "severity": self.severity.value,
            "message": self.message,
            "metadata": dict(self.metadata),
            "rows": [row.as_json() for row in self.rows],
        }


def overall(verdicts: Iterable[Verdict]) -> Overall:
    """Gives the worst outcome: a check without an answer is worse than one that found something."""
    failed = [verdict for verdict in verdicts if not verdict.passed]
    if any(verdict.could_not_look for verdict in failed):
        return Overall.ERROR
    return Overall.ISSUES_DETECTED if failed else Overall.HEALTHY
