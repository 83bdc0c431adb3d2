"""What tasks did, told without their rows: counters that come from different places on purpose."""

import pickle
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from bq_harper_assets.errors import BqhError, TransientError
from bq_harper_assets.stores.bigquery.errors import ReadSessionLost
from bq_harper_assets.sync.errors import NotCompared, NotComparedYet
from bq_harper_assets.sync.identity.digest import Digest

_NAMELESS = "no-id:"
_IS_NAMELESS = re.compile(rf"{_NAMELESS}[0-9A-Z]{{13}}")


def nameless_id(row_hash: str) -> str:
    """What a row that can have no id is called in quarantine, short enough to be typed."""
    return f"{_NAMELESS}{row_hash}"


def is_nameless(row_id: str | None) -> bool:
    """Whether a row in quarantine has no id; earlier releases called it nothing."""
    return row_id is None or _IS_NAMELESS.fullmatch(row_id) is not None


@dataclass(frozen=True)
class RejectedRow:
    """A row that cannot be stored: its id or nameless_id(), the reason, and the row itself."""

    place: int
    row_id: str
    reason: str
    payload: str


@dataclass
class Tally:
    """One cell, as far as one task or all of them saw it."""

    read: int = 0  # counted in the source's batches
    written: int = 0  # counted in Harper's answers
    bytes: int = 0
    digest: Digest = field(default_factory=Digest)

    def __iadd__(self, other: "Tally") -> "Tally":
        self.read += other.read
        self.written += other.written
        self.bytes += other.bytes
        self.digest += other.digest
        return self


@dataclass(frozen=True)
class Failure:
    """Why a task stopped before its end; the same error again in the driver."""

    error: str
    is_transient: bool
    lost_session: bool = False  # the same rows can be had from a new session at the same instant


def failure_of(error: BqhError) -> Failure:
    """The failure by which a task tells its driver of the error."""
    lost = isinstance(error, ReadSessionLost)
    # A step that repeated what was out of time would wait much longer than it may.
    return Failure(str(error), isinstance(error, TransientError) and not error.is_out_of_time, lost)


def error_of(failure: Failure) -> NotCompared:
    """The error that the driver raises for a task's failure."""
    return (NotComparedYet if failure.is_transient else NotCompared)(failure.error)


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What one task did."""

    tallies: dict[int, Tally]
    refusals: tuple[RejectedRow, ...]
    requests: int
    retries: int
    # When, by the wall clock, a write was sent last that may take effect without our knowing.
    unanswered_at: float | None
    failure: Failure | None = None
    earlier_tries: int = 0  # of this task, which left no receipt
    extras: frozenset[str] = frozenset()  # attributes of rows it read that nobody synced

    @property
    def all_answered(self) -> bool:
        """False if Harper may still apply what this task, or a killed try of it, has sent."""
        return self.unanswered_at is None and self.earlier_tries == 0

    def dumps(self) -> bytes:
        """For the way from the executor to the driver, which run the same code."""
        return pickle.dumps(self)

    @staticmethod
    def loads(content: bytes) -> "Receipt":
        """The receipt that dumps() wrote."""
        receipt = pickle.loads(content)
        assert isinstance(receipt, Receipt)
        return receipt


def merged(receipts: Iterable[Receipt]) -> dict[int, Tally]:
    """All tasks together, by place."""
    total: dict[int, Tally] = {}
    for receipt in receipts:
        for place, tally in receipt.tallies.items():
            total.setdefault(place, Tally()).__iadd__(tally)
    return total
