"""What a check found, in the words that users search for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """How much a check that did not pass matters."""

    WARN = "warn"
    ERROR = "error"


class ProgressStatus(StrEnum):
    """Whether the sync keeps up."""

    HEALTHY = "healthy"
    LAGGING = "lagging"
    SEVERELY_LAGGING = "severely_lagging"
    STALLED = "stalled"
    NO_CHECKPOINT = "no_checkpoint"
    ROWS_WITHOUT_TIME = "rows_without_time"  # which no window has, so that they are never copied


class SmokeStatus(StrEnum):
    """Whether a user's query finds recent rows."""

    HEALTHY = "healthy"
    NO_RECENT_DATA = "no_recent_data"
    QUERY_FAILED = "query_failed"
    TABLE_NOT_FOUND = "table_not_found"


class SpotStatus(StrEnum):
    """Whether rows picked at random are the same in both stores."""

    HEALTHY = "healthy"
    ISSUES_FOUND = "issues_found"
    NO_DATA = "no_data"
    CHECK_FAILED = "check_failed"


class ProofStatus(StrEnum):
    """Whether a whole cell is the same in both stores, or all cells of a table."""

    PROVED = "proved"
    PARTLY_PROVED = "partly_proved"  # of a table: some cells were not proved since their sync
    DIFFERS = "differs"
    OPEN = "open"  # equal as far as it goes, but rows may still arrive
    SOURCE_CHANGED = "source_changed"  # since its sync, and BigQuery has no past to compare with
    NOT_SYNCED = "not_synced"
    MOVING = "moving"  # a run is at work on it, or it is marked and waits for one
    CHECK_FAILED = "check_failed"


Status = ProgressStatus | SmokeStatus | SpotStatus | ProofStatus


class DifferenceKind(StrEnum):
    """What is wrong with a row."""

    MISSING = "missing"  # in BigQuery, and not in Harper
    CHANGED = "changed"  # in both, with different values
    PHANTOM = "phantom"  # in Harper, and not in BigQuery
    LOST = "lost"  # in Harper, and no window finds it


class Overall(StrEnum):
    """All verdicts in one word."""

    HEALTHY = "healthy"
    ISSUES_DETECTED = "issues_detected"
    ERROR = "error"


@dataclass(frozen=True)
class Difference:
    """A row that is not the same in both stores; values are as Harper stores them."""

    kind: DifferenceKind
    id: str | int
    columns: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)  # (source, target)

    def __str__(self) -> str:
        values = ", ".join(f"{name}: {a!r} -> {b!r}" for name, (a, b) in self.columns.items())
        return f"{self.kind} {self.id}" + (f" ({values})" if values else "")

    def as_json(self) -> dict[str, Any]:
        """For metadata and audit records."""
        columns = {name: list(values) for name, values in self.columns.items()}
        return {"kind": self.kind.value, "id": self.id, "columns": columns}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of one check; `metadata` and `rows` can be written as JSON."""

    check: str
    status: Status
    passed: bool
    severity: Severity
    message: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[Difference, ...] = ()

    @property
    def could_not_look(self) -> bool:
        """Nothing is known of the table: a store did not answer."""
        return self.status in (
            SmokeStatus.QUERY_FAILED,
            SpotStatus.CHECK_FAILED,
            ProofStatus.CHECK_FAILED,
        )

    def as_json(self) -> dict[str, Any]:
        """For audit records."""
        return {
            "status": self.status.value,
            "passed": self.passed,
            "severity": self.severity.value,
            "message": self.message,
            "metadata": dict(self.metadata),
            "rows": [row.as_json() for row in self.rows],
        }


def overall(verdicts: Iterable[Verdict]) -> Overall:
    """The worst of them: a check that could not look is worse than one that found something."""
    failed = [verdict for verdict in verdicts if not verdict.passed]
    if any(verdict.could_not_look for verdict in failed):
        return Overall.ERROR
    return Overall.ISSUES_DETECTED if failed else Overall.HEALTHY
