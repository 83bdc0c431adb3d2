"""What a tick of the sensor leaves to the next, and shows to whoever looks at the sensor."""

from collections.abc import Iterable
from datetime import datetime

from pydantic import BaseModel, ConfigDict

from bq_harper_assets.defs.schema.drift_news import Told
from bq_harper_assets.sync.schema_sync.drift_pace import LastLook, Pace, hurried
from bq_harper_assets.sync.schema_sync.drift_round import Round


class DriftCursor(BaseModel):
    """The cursor says when to look next; the claim keeps what was found, for all deployments."""

    model_config = ConfigDict(extra="ignore")

    next_look: datetime | None = None
    last_look: datetime | None = None
    pace: Pace = Pace()
    metadata_calls: int = 0  # of the last look
    metadata_calls_so_far: int = 0
    could_not_look: dict[str, str] = {}  # by table, why
    tables: dict[str, Told] = {}

    def begun(self, now: datetime, last: LastLook | None) -> "DriftCursor":
        """The first tick, or the first since the cursor was lost: as all deployments know it."""
        if last is None:
            return self.model_copy(update={"next_look": now + self.pace.wait})
        known = {"next_look": last.next_look, "last_look": last.at, "pace": last.pace}
        return self.model_copy(update=known)

    def hurried(self, recorded: Iterable[datetime]) -> "DriftCursor":
        """With what syncs and people have recorded since the last look."""
        if self.next_look is None or self.last_look is None:
            return self
        pace, next_look = hurried(self.pace, self.next_look, self.last_look, recorded)
        return self.model_copy(update={"pace": pace, "next_look": next_look})

    def looked(self, found: Round) -> "DriftCursor":
        """After a look, of this deployment or of another."""
        return self.model_copy(
            update={
                "next_look": found.last.next_look,
                "last_look": found.last.at,
                "pace": found.last.pace,
                "metadata_calls": found.calls,
                "metadata_calls_so_far": self.metadata_calls_so_far + found.calls,
                "could_not_look": dict(found.away),
            }
        )
