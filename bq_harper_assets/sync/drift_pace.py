"""How soon to look for changed schemas again: soon after a change, seldom while nothing happens."""

from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict

SHORTEST = timedelta(minutes=5)
LONGEST = timedelta(minutes=30)
STABLE_LOOKS = 3  # before the wait begins to grow
GROWTH = 1.5


class Pace(BaseModel):
    """The wait before the next look, and how many looks in a row have found nothing."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    wait: timedelta = SHORTEST
    stable: int = 0

    def after(self, *, changed: bool) -> "Pace":
        """As it is once a look has found a change, or none."""
        if changed:
            return Pace()
        stable = self.stable + 1
        grown = self.wait * GROWTH if stable >= STABLE_LOOKS else self.wait
        return Pace(wait=min(grown, LONGEST), stable=stable)


class LastLook(BaseModel):
    """What one deployment leaves to the others, so that all of them together look once."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    at: datetime
    next_look: datetime
    pace: Pace
    tables: tuple[str, ...]  # those that were looked at
    versions: dict[str, int] = {}  # by table: its newest, whoever has recorded it
    problems: dict[str, str] = {}  # by table: why its schema cannot be followed
