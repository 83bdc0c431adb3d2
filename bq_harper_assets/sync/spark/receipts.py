"""A receipt says what a task did without its rows; its counts have different origins on purpose."""

import pickle
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from bq_harper_assets.errors import BqhError, TransientError
from bq_harper_assets.sync.errors import NotCompared, NotComparedYet, SplitsLost
from bq_harper_assets.sync.identity.digest import Digest

_NAMELESS = "no-id:"
_IS_NAMELESS = re.compile(rf"{_NAMELESS}[0-9A-Z]{{13}}")


def nameless_id(row_hash: str) -> str:
    """Returns the name, short enough to type, that a row without an id has in quarantine."""
    return f"{_NAMELESS}{row_hash}"


def is_nameless(row_id: str | None) -> bool:
    """Says whether a row in quarantine has no id; earlier releases stored None for it."""
    return row_id is None or _IS_NAMELESS.fullmatch(row_id) is not None


@dataclass(frozen=True)
class RejectedRow:
    """A rejected row is not stored; it has its id or nameless_id(), the reason and the payload."""

    place: int
    row_id: str
    reason: str
    payload: str


@dataclass
class Tally:
    """A tally has the counts of one cell, by one task or by all of them."""

    read: int = 0  # counted in the source's batches
    written: int = 0  # counted in the target's answers
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
    """A failure says why a task stopped early; the driver raises or reports its error."""

    error: str
    is_transient: bool
    lost_splits: bool = False  # new splits at the same instant give the same rows


def failure_of(error: BqhError) -> Failure:
    """Returns the failure by which a task reports the error to its driver."""
    lost = isinstance(error, SplitsLost)
    # An error that used up its time is not transient: repeating it would take longer than allowed.
    return Failure(str(error), isinstance(error, TransientError) and not error.is_out_of_time, lost)


def error_of(failure: Failure) -> NotCompared:
    """Returns the error that the driver raises for a task's failure."""
    return (NotComparedYet if failure.is_transient else NotCompared)(failure.error)


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """A receipt is what a task returns: counts and digest per cell, rejected rows, its failure."""

    tallies: dict[int, Tally]
    refusals: tuple[RejectedRow, ...]
    requests: int
    retries: int
    # When, by the wall clock, the last write was sent that was never answered.
    unanswered_at: float | None
    failure: Failure | None = None
    earlier_tries: int = 0  # of this task; they left no receipt
    extras: frozenset[str] = frozenset()  # attributes it read that no sync wrote

    @property
    def all_answered(self) -> bool:
        """Says whether the target can apply nothing more of what this task's tries have sent."""
        return self.unanswered_at is None and self.earlier_tries == 0

    def dumps(self) -> bytes:
        """Pickles the receipt for the driver, which runs the same code as the executor."""
        return pickle.dumps(self)

    @staticmethod
    def loads(content: bytes) -> "Receipt":
        """Reads a receipt that dumps() wrote."""
        receipt = pickle.loads(content)
        assert isinstance(receipt, Receipt)
        return receipt


def merged(receipts: Iterable[Receipt]) -> dict[int, Tally]:
    """Adds up the tallies of all tasks, by place."""
    total: dict[int, Tally] = {}
    for receipt in receipts:
        for place, tally in receipt.tallies.items():
            total.setdefault(place, Tally()).__iadd__(tally)
    return total
