"""How soon to look for changed schemas again: soon after a change, seldom while nothing happens."""

from collections.abc import Iterable
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
    problems: dict[str, str] = {}  # by table: why its schema cannot be followed

    def hurried(self, recorded: Iterable[datetime]) -> "LastLook":
        """With what syncs and people have recorded since."""
        pace, next_look = hurried(self.pace, self.next_look, self.at, recorded)
        return self.model_copy(update={"pace": pace, "next_look": next_look})


def hurried(
    pace: Pace, next_look: datetime, looked_at: datetime, recorded: Iterable[datetime]
) -> tuple[Pace, datetime]:
    """A version that was recorded since the look is a change as if a look had seen it then.

    Told from the ledger alone, so that all deployments hurry alike and none has to tell another.
    """
    since = [at for at in recorded if at > looked_at]
    return (Pace(), min(next_look, min(since) + SHORTEST)) if since else (pace, next_look)
