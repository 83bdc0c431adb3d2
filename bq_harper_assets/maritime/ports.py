"""Lists the 29 ports: where they are, how busy they are, and whose ships come there."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)  # its fields are positional: the table below is read by its columns
class Port:
    """A port has a `weight`, its share of calls in loops, and its place in degrees."""

    id: str
    name: str
    basin: int
    weight: int
    at: tuple[float, float]  # latitude, longitude


# A ship stays within one of these. Each has room for a loop in which no port comes twice.
_ASIA, _EUROPE_AFRICA, _AMERICAS = range(3)

PORTS: tuple[Port, ...] = (
    Port("JPTYO", "Tokyo", _ASIA, 4, (35.61, 139.79)),
    Port("KRPUS", "Busan", _ASIA, 6, (35.08, 129.05)),
    Port("CNTXG", "Tianjin", _ASIA, 4, (38.98, 117.75)),
    Port("CNTAO", "Qingdao", _ASIA, 5, (36.02, 120.22)),
    Port("CNSHA", "Shanghai", _ASIA, 9, (31.34, 121.65)),
    Port("TWKHH", "Kaohsiung", _ASIA, 3, (22.57, 120.30)),
    Port("HKHKG", "Hong Kong", _ASIA, 7, (22.33, 114.12)),
    Port("CNCAN", "Guangzhou", _ASIA, 5, (22.75, 113.60)),
    Port("SGSIN", "Singapore", _ASIA, 10, (1.26, 103.82)),
    Port("MYPKG", "Port Klang", _ASIA, 4, (2.98, 101.33)),
    Port("AEDXB", "Dubai", _EUROPE_AFRICA, 6, (25.02, 55.05)),
    Port("SAJED", "Jeddah", _EUROPE_AFRICA, 3, (21.47, 39.15)),
    Port("GRPIR", "Piraeus", _EUROPE_AFRICA, 3, (37.94, 23.62)),
    Port("ESVLC", "Valencia", _EUROPE_AFRICA, 3, (39.44, -0.31)),
    Port("GBFXT", "Felixstowe", _EUROPE_AFRICA, 2, (51.95, 1.31)),
    Port("BEANR", "Antwerp", _EUROPE_AFRICA, 5, (51.28, 4.30)),
    Port("NLRTM", "Rotterdam", _EUROPE_AFRICA, 7, (51.95, 4.05)),
    Port("DEHAM", "Hamburg", _EUROPE_AFRICA, 4, (53.53, 9.93)),
    Port("NGLOS", "Lagos", _EUROPE_AFRICA, 2, (6.43, 3.40)),
    Port("ZACPT", "Cape Town", _EUROPE_AFRICA, 2, (-33.90, 18.43)),
    Port("ZADUR", "Durban", _EUROPE_AFRICA, 2, (-29.87, 31.03)),
    Port("BRSSZ", "Santos", _AMERICAS, 3, (-23.97, -46.30)),
    Port("USNYC", "New York/New Jersey", _AMERICAS, 5, (40.67, -74.05)),
    Port("USSAV", "Savannah", _AMERICAS, 3, (32.08, -81.09)),
    Port("USHOU", "Houston", _AMERICAS, 4, (29.73, -95.00)),
    Port("MXZLO", "Manzanillo", _AMERICAS, 2, (19.06, -104.31)),
    Port("USLGB", "Long Beach", _AMERICAS, 5, (33.75, -118.20)),
    Port("USLAX", "Los Angeles", _AMERICAS, 6, (33.73, -118.27)),
    Port("CAVAN", "Vancouver", _AMERICAS, 3, (49.29, -123.10)),
)

WEIGHTS = np.array([port.weight for port in PORTS], dtype=np.float64)
PLACES = np.array([port.at for port in PORTS])
BASINS = [
    np.flatnonzero([port.basin == basin for port in PORTS])
    for basin in (_ASIA, _EUROPE_AFRICA, _AMERICAS)
]
