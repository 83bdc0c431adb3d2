"""Lists the six kinds of vessel and the twenty flags they fly."""

from dataclasses import dataclass

_Range = tuple[float, float]


@dataclass(frozen=True)  # its fields are positional: the table below is read by its columns
class VesselType:
    """A vessel type is what its vessels have in common: how fast, how big, how they trade."""

    name: str
    share: float  # of the fleet
    speed_knots: _Range
    length_m: _Range
    draft_m: _Range
    calls: int  # ports in its loop; 1 means trips to a fishing ground and back
    worldwide: float  # share of vessels whose loop spans oceans; the others stay in one basin
    liner: bool  # calls in geographic order, as a timetable would
    stay_hours: _Range
    anchored: float  # share of calls spent at anchor instead of at a berth
    tonnes_per_m: float  # deadweight per metre of length and metre of draft


# fmt: off
VESSEL_TYPES: tuple[VesselType, ...] = (
    VesselType("CONTAINER", 0.35, (18, 25), (200, 400), (10, 16), 5, 0.5, True, (12, 36), 0.05, 30),
    VesselType("BULK_CARRIER", 0.25, (12, 16), (150, 300), (8, 14), 3, 0.5, False, (30, 72),
               0.25, 34),
    VesselType("TANKER", 0.20, (13, 17), (180, 330), (10, 18), 2, 0.5, False, (20, 40), 0.30, 38),
    VesselType("CARGO", 0.10, (14, 19), (120, 250), (7, 12), 4, 0.2, False, (12, 48), 0.15, 18),
    VesselType("PASSENGER", 0.05, (20, 30), (200, 360), (7, 9), 5, 0.2, True, (8, 14), 0.10, 5),
    VesselType("FISHING", 0.05, (8, 14), (30, 100), (3, 6), 1, 0.0, False, (8, 20), 0.0, 6),
)
# fmt: on

MAX_CALLS = max(kind.calls for kind in VESSEL_TYPES)


@dataclass(frozen=True)
class FlagState:
    """A flag state gives its ships the beginnings of their MMSI (`mid`) and call sign."""

    code: str
    share: float
    mid: str
    callsign: str


FLAGS: tuple[FlagState, ...] = (
    FlagState("PA", 16, "352", "3E"),
    FlagState("LR", 15, "636", "D5"),
    FlagState("MH", 13, "538", "V7"),
    FlagState("HK", 9, "477", "VR"),
    FlagState("SG", 8, "563", "9V"),
    FlagState("MT", 6, "248", "9H"),
    FlagState("CN", 6, "412", "BO"),
    FlagState("BS", 4, "308", "C6"),
    FlagState("GR", 3, "237", "SV"),
    FlagState("JP", 3, "431", "7J"),
    FlagState("CY", 2, "209", "5B"),
    FlagState("DK", 2, "219", "OX"),
    FlagState("NO", 2, "257", "LA"),
    FlagState("GB", 2, "232", "MM"),
    FlagState("KR", 2, "440", "DS"),
    FlagState("DE", 1, "211", "DA"),
    FlagState("NL", 1, "244", "PH"),
    FlagState("US", 2, "367", "WD"),
    FlagState("IT", 2, "247", "IB"),
    FlagState("IN", 1, "419", "AU"),
)
