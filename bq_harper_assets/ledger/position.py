"""A position is a typed point in a store's history, up to which a turn reads its source.

Two positions of one store are before, equal, after or not comparable: sets of transactions may each
have something that the other lacks. The ledger gives each position a rank when it is planned, and
whatever it must not take back, it orders by rank.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol

from bq_harper_assets.instants import micros_at


class PositionOrder(StrEnum):
    """A position order says where one position lies, seen from another of the same kind."""

    BEFORE = "before"
    EQUAL = "equal"
    AFTER = "after"
    NOT_COMPARABLE = "not comparable"


class Position(Protocol):
    """A position is what each store has a class for; the ledger keeps its kind and its text."""

    @property
    def kind(self) -> str:
        """Returns the store's word for such positions; only those of one kind are compared."""
        ...

    @property
    def text(self) -> str:
        """Returns the text that says it whole; equal positions may be written differently."""
        ...

    @property
    def rank(self) -> int | None:
        """Returns its place in an order that is total and known beforehand; else None."""
        ...

    def compared_with(self, text: str) -> PositionOrder:
        """Says where this position lies, seen from the one of the same kind that the text says."""
        ...


@dataclass(frozen=True)
class InstantPosition:
    """An instant by the store's clock is the position of a store that is read as of a time."""

    t: datetime

    @property
    def kind(self) -> str:
        """Returns the word for such positions."""
        return "instant"

    @property
    def text(self) -> str:
        """Returns the instant in UTC, with six digits of a second: its order is that of time."""
        return f"{self.t.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"

    @property
    def rank(self) -> int:
        """Returns the microseconds since 1970."""
        return micros_at(self.t)

    def compared_with(self, text: str) -> PositionOrder:
        """Compares the two instants."""
        other = datetime.fromisoformat(text)
        if self.t < other:
            return PositionOrder.BEFORE
        return PositionOrder.AFTER if self.t > other else PositionOrder.EQUAL
