"""Decides which vessel reports when, and makes the rows of vessel_positions."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bq_harper_assets.errors import BqhError
from bq_harper_assets.maritime import chance
from bq_harper_assets.maritime.disorder import DUPLICATE, FUTURE, LATE, NULL, ORDERLY, TIE, Disorder
from bq_harper_assets.maritime.itinerary import SECOND, Ints, Itineraries
from bq_harper_assets.maritime.ports import PORTS
from bq_harper_assets.maritime.tables import POSITIONS, arrow_table, with_optional
from bq_harper_assets.maritime.track import STATUSES, locate
from bq_harper_assets.maritime.vessel_types import FLAGS, VESSEL_TYPES

DAY = 86_400 * SECOND
# It is so far off that no restart of `start` takes such a row for its newest.
FUTURE_BY = 365 * DAY
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_TYPES = pa.array([kind.name for kind in VESSEL_TYPES])
_FLAGS = pa.array([flag.code for flag in FLAGS])
_STATUSES = pa.array(STATUSES)
_PORTS = pa.array([port.name for port in PORTS])


class TooManyRows(BqhError):
    """Rows would be closer together than timestamps can tell apart."""


def microseconds(moment: datetime) -> int:
    """Returns the microseconds since 1970, UTC."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment(time: int) -> datetime:
    """Returns the time of so many microseconds since 1970; it is the inverse of microseconds()."""
    return _EPOCH + timedelta(microseconds=int(time))


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A schedule says when vessels report.

    Row n is a report of vessel n mod `vessels`; each `span` has `rows` of them, evenly.
    """

    seed: int
    vessels: int
    origin: int
    span: int
    rows: int

    def __post_init__(self) -> None:
        if not 1 <= self.rows <= self.span // 2:
            raise TooManyRows(
                f"{self.rows:,} rows do not fit into {self.span / SECOND:,.0f} s: 1 to"
                f" {self.span // 2:,} do. Nothing was written; ask for another number of rows."
            )

    def times(self, number: Ints) -> Ints:
        """Returns times that strictly increase with the row number.

        Each row keeps to the first half of its slot.
        """
        lap, place = np.divmod(number, self.rows)
        slot, rest = divmod(self.span, self.rows)
        start = self.origin + lap * self.span + place * slot + place * rest // self.rows
        jitter = chance.bits(self.seed, "jitter", number) % np.uint64(max(1, slot // 2))
        times: Ints = start + jitter.astype(np.int64)
        return times


@dataclass(frozen=True)
class Reports:
    """Reports are the rows of a schedule by number: any cut into batches gives the same rows."""

    plan: Itineraries
    schedule: Schedule
    disorder: Disorder = ORDERLY

    def kinds(self, number: Ints) -> NDArray[np.int8]:
        """Returns the kind of disorder of each row, 0 if it has none."""
        return self.disorder.kinds(self.schedule.seed, self.schedule.rows, number)

    def times(self, number: Ints) -> Ints:
        """Returns when each row was reported, whatever its timestamp column says."""
        return self.schedule.times(number + (self.kinds(number) == TIE))

    def rows(self, number: Ints) -> Any:
        """Returns one row for each number, as a pyarrow Table."""
        kinds = self.kinds(number)
        time = self.schedule.times(number + (kinds == TIE))
        vessel = number % self.schedule.vessels
        stamp = time + np.where(kinds == FUTURE, FUTURE_BY, 0)
        return self._table(vessel, time, stamp, kinds == NULL)

    def fresh(self, number: Ints) -> Any:
        """Returns the rows of a load: late ones are left out, and duplicates come twice."""
        kinds = self.kinds(number)
        copies = np.select([kinds == LATE, kinds == DUPLICATE], [0, 2], 1)
        return self.rows(np.repeat(number, copies))

    def of_kind(self, number: Ints, kind: int) -> Ints:
        """Returns those of the numbers whose row is of this kind."""
        found: Ints = number[self.kinds(number) == kind]
        return found

    def mmsi(self, number: Ints) -> list[str]:
        """Returns the MMSI of the vessel that made each report."""
        texts: list[str] = self.plan.fleet.mmsi.take(number % self.schedule.vessels).to_pylist()
        return texts

    def _table(self, vessel: Ints, time: Ints, stamp: Ints, unstamped: NDArray[np.bool_]) -> Any:
        fleet, fixes = self.plan.fleet, locate(self.plan, vessel, time)
        in_port = fixes.destination < 0
        days, day = np.unique(stamp // DAY, return_inverse=True)
        dates = pa.array([moment(d * DAY).strftime("%Y%m%d") for d in days], pa.string())
        who, course = pa.array(vessel), pa.array(fixes.course)
        utc = pa.timestamp("us", tz="UTC")
        shape = with_optional(POSITIONS, "timestamp") if self.disorder.nulls else POSITIONS
        return arrow_table(
            shape,
            {
                "mmsi": fleet.mmsi.take(who),
                "imo": fleet.imo.take(who),
                "vessel_name": fleet.name.take(who),
                "vessel_type": _TYPES.take(pa.array(fleet.kind[vessel])),
                "flag": _FLAGS.take(pa.array(fleet.flag[vessel])),
                "length": pa.array(fleet.length[vessel]),
                "beam": pa.array(fleet.beam[vessel]),
                "draft": pa.array(fleet.draft[vessel]),
                "latitude": pa.array(fixes.latitude),
                "longitude": pa.array(fixes.longitude),
                "speed_knots": pa.array(fixes.speed),
                "course": course,
                "heading": course,
                "status": _STATUSES.take(pa.array(fixes.status)),
                "destination": _PORTS.take(pa.array(fixes.destination, mask=in_port)),
                "eta": pa.array(fixes.arrival, mask=in_port).cast(utc),
                "timestamp": pa.array(stamp, mask=unstamped).cast(utc),
                "report_date": dates.take(pa.array(day)),
            },
        )
