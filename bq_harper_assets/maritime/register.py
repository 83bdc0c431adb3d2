"""Makes the rows of vessel_metadata, one per vessel."""

from typing import Any

import numpy as np
import pyarrow as pa

from bq_harper_assets.maritime.fleet import OWNERS
from bq_harper_assets.maritime.itinerary import CALLS, Itineraries
from bq_harper_assets.maritime.ports import PORTS
from bq_harper_assets.maritime.reports import Schedule
from bq_harper_assets.maritime.tables import REGISTER, arrow_table
from bq_harper_assets.maritime.track import STATUSES, locate
from bq_harper_assets.maritime.vessel_types import FLAGS, VESSEL_TYPES


def register_rows(plan: Itineraries, start: int, end: int) -> Any:
    """Returns the whole fleet; its rows were last updated at times spread over [start, end)."""
    fleet = plan.fleet
    number = np.arange(fleet.size, dtype=np.int64)
    updated = Schedule(
        seed=fleet.seed, vessels=fleet.size, origin=start, span=end - start, rows=fleet.size
    ).times(number)
    home = plan.port[::CALLS]
    tonnage = fleet.length * fleet.beam * fleet.draft
    return arrow_table(
        REGISTER,
        {
            "last_updated": pa.array(updated).cast(pa.timestamp("us", tz="UTC")),
            "mmsi": fleet.mmsi,
            "imo": fleet.imo,
            "vessel_name": fleet.name,
            "vessel_type": pa.array([t.name for t in VESSEL_TYPES]).take(pa.array(fleet.kind)),
            "flag": pa.array([f.code for f in FLAGS]).take(pa.array(fleet.flag)),
            "callsign": fleet.callsign,
            "length": pa.array(fleet.length),
            "beam": pa.array(fleet.beam),
            "draft": pa.array(np.rint(fleet.draft).astype(np.int64)),
            "gross_tonnage": pa.array((tonnage * 0.6).astype(np.int64)),
            "deadweight": pa.array((tonnage * 0.7).astype(np.int64)),
            "year_built": pa.array(fleet.year_built),
            "home_port": pa.array([p.name for p in PORTS]).take(pa.array(home)),
            "owner": pa.array(OWNERS).take(pa.array(fleet.owner)),
            "status": pa.array(STATUSES).take(pa.array(locate(plan, number, updated).status)),
        },
    )
