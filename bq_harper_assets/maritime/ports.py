"""Lists the 29 ports: where they are, how busy, where ships enter them, where their boats fish.

The order runs along the trade lanes from Tokyo to Vancouver: a liner's calls in this order make a
sensible loop.
"""

from dataclasses import dataclass

import numpy as np

Point = tuple[float, float]  # latitude, longitude in degrees


@dataclass(frozen=True)  # its fields are positional: the table below is read by its columns
class Port:
    """A port has a `weight`, its share of calls in loops, and a `fairway`, where ships enter."""

    id: str
    name: str
    country: str
    region: str
    weight: int
    at: Point
    fairway: Point
    fishing_ground: Point


_AS, _ME, _EU, _AF, _AM = "Asia", "Middle East", "Europe", "Africa", "Americas"

# fmt: off
PORTS: tuple[Port, ...] = (
    Port("JPTYO", "Tokyo", "JP", _AS, 4, (35.61, 139.79), (34.98, 139.70), (34.10, 140.30)),
    Port("KRPUS", "Busan", "KR", _AS, 6, (35.08, 129.05), (34.90, 129.10), (34.60, 129.05)),
    Port("CNTXG", "Tianjin", "CN", _AS, 4, (38.98, 117.75), (38.75, 118.30), (38.60, 119.20)),
    Port("CNTAO", "Qingdao", "CN", _AS, 5, (36.02, 120.22), (35.90, 120.60), (35.50, 121.50)),
    Port("CNSHA", "Shanghai", "CN", _AS, 9, (31.34, 121.65), (30.95, 122.70), (30.60, 124.00)),
    Port("TWKHH", "Kaohsiung", "TW", _AS, 3, (22.57, 120.30), (22.50, 120.15), (22.10, 119.40)),
    Port("HKHKG", "Hong Kong", "HK", _AS, 7, (22.33, 114.12), (22.12, 114.30), (21.40, 115.00)),
    Port("CNCAN", "Guangzhou", "CN", _AS, 5, (22.75, 113.60), (21.98, 113.78), (21.00, 113.60)),
    Port("SGSIN", "Singapore", "SG", _AS, 10, (1.26, 103.82), (1.19, 103.86), (1.45, 104.70)),
    Port("MYPKG", "Port Klang", "MY", _AS, 4, (2.98, 101.33), (2.88, 101.15), (3.20, 100.60)),
    Port("AEDXB", "Dubai", "AE", _ME, 6, (25.02, 55.05), (25.30, 54.95), (25.60, 54.40)),
    Port("SAJED", "Jeddah", "SA", _ME, 3, (21.47, 39.15), (21.40, 38.80), (20.90, 38.20)),
    Port("GRPIR", "Piraeus", "GR", _EU, 3, (37.94, 23.62), (37.75, 23.50), (36.95, 23.70)),
    Port("ESVLC", "Valencia", "ES", _EU, 3, (39.44, -0.31), (39.38, -0.10), (39.30, 0.60)),
    Port("GBFXT", "Felixstowe", "GB", _EU, 2, (51.95, 1.31), (51.90, 1.65), (52.10, 2.50)),
    Port("BEANR", "Antwerp", "BE", _EU, 5, (51.28, 4.30), (51.42, 3.20), (51.65, 2.75)),
    Port("NLRTM", "Rotterdam", "NL", _EU, 7, (51.95, 4.05), (52.00, 3.70), (52.60, 3.30)),
    Port("DEHAM", "Hamburg", "DE", _EU, 4, (53.53, 9.93), (54.00, 8.05), (54.50, 6.90)),
    Port("NGLOS", "Lagos", "NG", _AF, 2, (6.43, 3.40), (6.20, 3.40), (5.30, 3.20)),
    Port("ZACPT", "Cape Town", "ZA", _AF, 2, (-33.90, 18.43), (-33.85, 18.25), (-34.00, 17.40)),
    Port("ZADUR", "Durban", "ZA", _AF, 2, (-29.87, 31.03), (-29.90, 31.30), (-30.20, 32.10)),
    Port("BRSSZ", "Santos", "BR", _AM, 3, (-23.97, -46.30), (-24.20, -46.30), (-25.10, -45.70)),
    Port("USNYC", "New York/New Jersey", "US", _AM, 5, (40.67, -74.05), (40.45, -73.70),
         (39.80, -72.60)),
    Port("USSAV", "Savannah", "US", _AM, 3, (32.08, -81.09), (31.95, -80.60), (31.50, -79.60)),
    Port("USHOU", "Houston", "US", _AM, 4, (29.73, -95.00), (29.10, -94.50), (28.20, -94.30)),
    Port("MXZLO", "Manzanillo", "MX", _AM, 2, (19.06, -104.31), (18.90, -104.50),
         (18.20, -105.20)),
    Port("USLGB", "Long Beach", "US", _AM, 5, (33.75, -118.20), (33.60, -118.15),
         (33.20, -118.05)),
    Port("USLAX", "Los Angeles", "US", _AM, 6, (33.73, -118.27), (33.60, -118.30),
         (33.30, -118.95)),
    Port("CAVAN", "Vancouver", "CA", _AM, 3, (49.29, -123.10), (49.20, -123.45),
         (49.35, -123.95)),
)
# fmt: on

WEIGHTS = np.array([port.weight for port in PORTS], dtype=np.float64)

# Regional traffic stays within one of these. Each has room for five calls in proportion to weight;
# the two ports of the Middle East alone would not.
BASINS: tuple[tuple[int, ...], ...] = tuple(
    tuple(i for i, port in enumerate(PORTS) if port.region in regions)
    for regions in ((_AS,), (_ME, _EU, _AF), (_AM,))
)
WORLD: tuple[int, ...] = tuple(range(len(PORTS)))
