"""The six kinds of vessel and the twenty flags they fly."""

from dataclasses import dataclass

Range = tuple[float, float]


@dataclass(frozen=True)
class VesselType:
    """What vessels of one kind have in common: how fast, how big, how they trade."""

    name: str
    share: float  # of the fleet
    speed_knots: Range
    length_m: Range
    draft_m: Range
    calls: int  # ports in its loop; 1 means trips to a fishing ground and back
    worldwide: float  # share of vessels whose loop spans oceans; the others stay in one basin
    liner: bool  # calls in geographic order, as a timetable would
    stay_hours: Range
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
class Flag:
    """`mid` opens the MMSI of its ships, `callsign` their radio call signs."""

    code: str
    share: float
    mid: str
    callsign: str


FLAGS: tuple[Flag, ...] = (
    Flag("PA", 16, "352", "3E"),
    Flag("LR", 15, "636", "D5"),
    Flag("MH", 13, "538", "V7"),
    Flag("HK", 9, "477", "VR"),
    Flag("SG", 8, "563", "9V"),
    Flag("MT", 6, "248", "9H"),
    Flag("CN", 6, "412", "BO"),
    Flag("BS", 4, "308", "C6"),
    Flag("GR", 3, "237", "SV"),
    Flag("JP", 3, "431", "7J"),
    Flag("CY", 2, "209", "5B"),
    Flag("DK", 2, "219", "OX"),
    Flag("NO", 2, "257", "LA"),
    Flag("GB", 2, "232", "MM"),
    Flag("KR", 2, "440", "DS"),
    Flag("DE", 1, "211", "DA"),
    Flag("NL", 1, "244", "PH"),
    Flag("US", 2, "367", "WD"),
    Flag("IT", 2, "247", "IB"),
    Flag("IN", 1, "419", "AU"),
)
