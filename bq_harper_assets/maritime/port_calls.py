"""Makes the rows of port_events from the itineraries, complete for any stretch of time."""

from typing import Any

import numpy as np
import pyarrow as pa

from bq_harper_assets.maritime.itinerary import CALLS, SECOND, Ints, Itineraries
from bq_harper_assets.maritime.ports import PLACES, PORTS
from bq_harper_assets.maritime.tables import EVENTS, arrow_table

ARRIVAL, BERTHED, DEPARTURE, _UNDERWAY, ANCHORED = range(5)
EVENT_TYPES = ("ARRIVAL", "BERTHED", "DEPARTURE", "UNDERWAY", "ANCHORED")
_STATUS = ("Arriving", "Moored", "Departing", "Under way using engine", "At anchor")

_TYPE_NAMES, _STATUS_TEXTS = pa.array(EVENT_TYPES), pa.array(_STATUS)
_PORT_IDS = pa.array([port.id for port in PORTS])
_PORT_NAMES = pa.array([port.name for port in PORTS])
_PILOTAGE = 1_800 * SECOND  # between arrival and berth, and from the berth until under way


def _occurrences(plan: Itineraries, start: int, end: int) -> tuple[Ints, Ints, Ints]:
    """Returns call, event type and time of all events in [start, end), in order of time."""
    call = np.arange(len(plan.port))
    stay_from, leg_from = plan.stages.reshape(-1, 2).T
    out = np.minimum(_PILOTAGE, plan.leg_time // 4)
    inward = out[np.argsort(plan.next_call)]  # of the call whose leg ends here
    offset = np.stack([stay_from - inward, stay_from, leg_from, leg_from + out], axis=1)
    vessel = call // CALLS
    period = plan.period[vessel][:, None]
    base = offset - plan.phase[vessel][:, None]
    first = base + -((base - start) // period) * period
    repeats = np.maximum(0, -((first - end) // period)).ravel()
    total = int(repeats.sum())
    nth = np.arange(total) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    time = np.repeat(first.ravel(), repeats) + nth * np.repeat(np.repeat(period, 4), repeats)
    which = np.repeat(np.repeat(call, 4), repeats)
    kind = np.repeat(np.tile(np.arange(4), len(call)), repeats)
    kind = np.where((kind == BERTHED) & plan.anchored[which], ANCHORED, kind)
    order = np.lexsort((kind, which, time))
    return which[order], kind[order], time[order]


def events_between(plan: Itineraries, start: int, end: int) -> Any:
    """Returns all events in [start, end) as a pyarrow Table, oldest first."""
    return _table(plan, *_occurrences(plan, start, end))


def last_events(plan: Itineraries, count: int, end: int) -> Any:
    """Returns the newest `count` events before `end`: a log without gaps, as long as needed."""
    per_us = 4 * CALLS * np.sum(1 / plan.period)
    reach = int(1.2 * (count + 10) / per_us)
    while True:
        call, kind, time = _occurrences(plan, end - reach, end)
        if len(time) >= count:
            newest = slice(len(time) - count, None)
            return _table(plan, call[newest], kind[newest], time[newest])
        reach *= 2


def _table(plan: Itineraries, call: Ints, kind: Ints, time: Ints) -> Any:
    port = pa.array(plan.port[call])
    places = PLACES[plan.port[call]]
    return arrow_table(
        EVENTS,
        {
            "event_time": pa.array(time).cast(pa.timestamp("us", tz="UTC")),
            "port_id": _PORT_IDS.take(port),
            "port_name": _PORT_NAMES.take(port),
            "vessel_mmsi": plan.fleet.mmsi.take(pa.array(call // CALLS)),
            "event_type": _TYPE_NAMES.take(pa.array(kind)),
            "status": _STATUS_TEXTS.take(pa.array(kind)),
            "latitude": pa.array(np.ascontiguousarray(places[:, 0])),
            "longitude": pa.array(np.ascontiguousarray(places[:, 1])),
        },
    )
