"""Lists the six kinds of vessel and the twelve flags they fly."""

from dataclasses import dataclass

_Range = tuple[float, float]


@dataclass(frozen=True)  # its fields are positional: the table below is read by its columns
class VesselType:
    """A vessel type is what its vessels have in common: how many, how fast and how big they are."""

    name: str
    share: float  # of the fleet
    speed_knots: _Range
    length_m: _Range
    draft_m: _Range


VESSEL_TYPES: tuple[VesselType, ...] = (
    VesselType("CONTAINER", 0.35, (18, 25), (200, 400), (10, 16)),
    VesselType("BULK_CARRIER", 0.25, (12, 16), (150, 300), (8, 14)),
    VesselType("TANKER", 0.20, (13, 17), (180, 330), (10, 18)),
    VesselType("CARGO", 0.10, (14, 19), (120, 250), (7, 12)),
    VesselType("PASSENGER", 0.05, (20, 30), (200, 360), (7, 9)),
    VesselType("FISHING", 0.05, (8, 14), (30, 100), (3, 6)),
)


@dataclass(frozen=True)
class FlagState:
    """A flag state gives its ships the beginnings of their MMSI (`mid`) and call sign."""

    code: str
    share: float
    mid: str
    callsign: str


FLAGS: tuple[FlagState, ...] = (
    FlagState("PA", 20, "352", "3E"),
    FlagState("LR", 18, "636", "D5"),
    FlagState("MH", 15, "538", "V7"),
    FlagState("HK", 11, "477", "VR"),
    FlagState("SG", 9, "563", "9V"),
    FlagState("MT", 7, "248", "9H"),
    FlagState("CN", 6, "412", "BO"),
    FlagState("BS", 4, "308", "C6"),
    FlagState("GR", 3, "237", "SV"),
    FlagState("JP", 3, "431", "7J"),
    FlagState("NO", 2, "257", "LA"),
    FlagState("DE", 2, "211", "DA"),
)
