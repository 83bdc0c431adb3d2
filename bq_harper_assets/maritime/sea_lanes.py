"""Finds the way of ships: the shortest way between two ports in a coarse graph of sea points.

It is coarse on purpose: every line keeps off the continents, but some clip a headland, a small
island or a river's bank.
"""

from functools import cache
from itertools import pairwise

import numpy as np

from bq_harper_assets.maritime.ports import PORTS, Point
from bq_harper_assets.maritime.sphere import angle_between, unit_vectors

# fmt: off
WAYPOINTS: dict[str, Point] = {
    # North-west Pacific
    "bohai strait": (38.55, 121.05), "shandong": (37.4, 123.2), "yellow sea": (35.6, 122.9),
    "jeju west": (32.6, 126.0), "jeju east": (33.1, 127.6), "osumi west": (30.8, 129.4),
    "osumi east": (30.8, 131.7), "shikoku": (32.4, 133.8), "kii": (33.1, 135.9),
    "enshu": (34.3, 138.4), "boso": (34.7, 141.0), "sanriku": (38.5, 142.6),
    "tsugaru east": (41.6, 141.8), "tsugaru west": (41.2, 140.0), "japan sea": (38.5, 135.5),
    "north pacific": (49.0, -178.0),
    # China to India
    "east china sea": (29.0, 123.2), "taiwan north": (26.0, 121.2), "taiwan strait": (24.6, 119.7),
    "penghu east": (23.4, 119.9), "shantou": (22.8, 117.3), "bashi": (21.2, 121.2),
    "south china north": (18.5, 113.8), "south china middle": (13.0, 111.5),
    "south china south": (8.0, 108.5), "anambas": (3.5, 105.2), "horsburgh": (1.4, 104.6),
    "phillip channel": (1.15, 103.5), "malacca south": (1.8, 102.4), "one fathom": (2.75, 101.0),
    "malacca north": (5.0, 98.8), "aceh": (6.3, 95.2), "dondra": (5.6, 80.6),
    # Arabia and the Red Sea
    "arabian sea": (17.0, 58.5), "ras al hadd": (22.6, 60.5), "oman": (25.0, 57.5),
    "hormuz": (26.6, 56.5), "socotra north": (13.6, 54.0), "gulf of aden": (12.2, 46.0),
    "aden east": (13.0, 50.5), "bab el mandeb": (12.6, 43.35), "hanish": (14.5, 42.0),
    "red sea": (20.0, 38.4), "red sea north": (26.8, 34.9), "gulf of suez": (28.2, 33.4),
    "suez": (29.9, 32.55), "port said": (31.5, 32.4),
    # Mediterranean
    "kasos": (35.45, 26.6), "aegean": (36.7, 23.6), "antikythera": (35.75, 23.2),
    "crete south": (34.3, 24.5), "malta south": (35.3, 15.0), "sicily channel": (37.45, 11.3),
    "algiers": (37.5, 4.0), "nao": (38.6, 0.6), "palos": (37.3, -0.2), "gata": (36.4, -2.0),
    "gibraltar east": (36.0, -5.0), "gibraltar": (35.93, -5.8),
    # Atlantic Europe
    "st vincent": (36.7, -9.3), "finisterre": (43.2, -9.9), "ushant": (48.8, -5.9),
    "casquets": (50.0, -2.8), "wight": (50.3, -0.9), "dover": (51.0, 1.45),
    "north hinder": (51.75, 2.6), "texel": (53.6, 4.3),
    # Africa
    "canaries": (28.5, -19.0), "cap blanc": (21.0, -18.5), "dakar": (14.7, -18.4),
    "guinea": (8.0, -16.5), "palmas": (3.8, -8.0), "three points": (4.2, -2.1),
    "namibia": (-22.0, 11.5), "cape west": (-34.6, 17.9), "agulhas": (-35.5, 20.0),
    "algoa": (-34.8, 26.0), "wild coast": (-33.3, 29.0), "pondoland": (-31.2, 31.0),
    "inhambane": (-25.0, 36.6), "mozambique": (-14.5, 42.0), "comoros west": (-10.5, 42.2),
    "somalia": (2.0, 49.0), "hafun": (9.5, 52.0), "guardafui": (12.4, 51.6),
    "socotra east": (11.5, 56.0), "madagascar south": (-27.5, 46.5),
    # Atlantic Americas
    "grand banks": (42.5, -50.0), "nantucket": (40.3, -69.5), "hatteras": (35.0, -75.0),
    "canaveral": (28.5, -79.8), "biscayne": (25.3, -79.7), "key west": (24.1, -81.0),
    "tortugas": (24.2, -83.3), "yucatan channel": (21.7, -85.8), "cayman west": (16.5, -81.5),
    "mona": (18.4, -67.9), "tobago": (11.65, -60.3), "guajira": (13.3, -71.0),
    "guyana": (8.5, -56.5), "calcanhar": (-4.3, -34.9), "recife": (-8.0, -34.2),
    "cabo frio": (-23.6, -41.5), "colon": (9.5, -79.9),
    # Pacific Americas
    "balboa": (8.8, -79.5), "mala": (7.0, -79.9), "coiba": (6.9, -81.8), "papagayo": (9.6, -86.8),
    "tehuantepec": (14.9, -97.0), "petacalco": (17.3, -103.0), "corrientes": (20.2, -106.1),
    "san lucas": (22.5, -110.3), "eugenia": (27.5, -115.9), "san clemente": (32.6, -117.9),
    "santa barbara": (34.15, -119.6), "conception": (34.3, -120.9), "mendocino": (40.4, -125.1),
    "juan de fuca": (48.5, -124.95), "victoria": (48.28, -123.5), "haro": (48.65, -123.2),
}

SEA_LANES: tuple[tuple[str, ...], ...] = (
    ("CNTXG", "bohai strait", "shandong", "yellow sea", "CNTAO"),
    ("yellow sea", "CNSHA", "east china sea", "taiwan north", "taiwan strait", "shantou", "HKHKG"),
    ("yellow sea", "jeju west", "jeju east", "KRPUS", "japan sea", "tsugaru west", "tsugaru east"),
    ("tsugaru east", "north pacific", "juan de fuca"), ("tsugaru east", "sanriku", "boso"),
    ("CNSHA", "jeju west"), ("CNSHA", "osumi west"), ("east china sea", "osumi west"),
    ("jeju east", "osumi west", "osumi east", "shikoku", "kii", "enshu", "JPTYO", "boso"),
    ("boso", "conception", "mendocino"), ("boso", "san lucas"), ("boso", "north pacific"),
    ("boso", "bashi", "TWKHH", "HKHKG", "CNCAN", "south china north"), ("bashi", "HKHKG"),
    ("TWKHH", "penghu east", "taiwan strait"), ("HKHKG", "south china north"),
    ("south china north", "south china middle", "south china south", "anambas", "horsburgh",
     "SGSIN", "phillip channel", "malacca south", "one fathom", "malacca north", "aceh", "dondra"),
    ("malacca south", "MYPKG", "one fathom"), ("MYPKG", "malacca north"),
    ("dondra", "ras al hadd", "oman", "hormuz", "AEDXB"), ("dondra", "socotra north"),
    ("ras al hadd", "arabian sea", "socotra north", "aden east", "gulf of aden", "bab el mandeb",
     "hanish", "SAJED", "red sea north"),
    ("hanish", "red sea", "red sea north", "gulf of suez", "suez", "port said"),
    ("port said", "kasos", "aegean", "GRPIR"), ("aegean", "antikythera", "malta south"),
    ("port said", "crete south", "malta south", "sicily channel", "algiers", "gata",
     "gibraltar east", "gibraltar", "st vincent", "finisterre", "ushant", "casquets", "wight",
     "dover", "north hinder", "NLRTM", "texel", "DEHAM"),
    ("algiers", "nao", "ESVLC"), ("nao", "palos", "gata"), ("gibraltar", "canaries"),
    ("GBFXT", "north hinder", "BEANR", "NLRTM"), ("north hinder", "texel"), ("GBFXT", "NLRTM"),
    ("finisterre", "canaries", "cap blanc", "dakar", "guinea", "palmas", "three points", "NGLOS"),
    ("st vincent", "canaries"), ("NGLOS", "namibia", "cape west"), ("NGLOS", "recife"),
    ("dakar", "cape west", "agulhas", "algoa", "wild coast", "pondoland", "ZADUR", "inhambane",
     "mozambique", "comoros west", "somalia", "hafun", "guardafui", "aden east"),
    ("palmas", "namibia"), ("palmas", "cape west"), ("palmas", "calcanhar"),
    ("cape west", "ZACPT", "namibia"), ("ZACPT", "dakar"), ("somalia", "socotra east"),
    ("socotra east", "arabian sea"), ("ZADUR", "madagascar south", "aceh"),
    ("agulhas", "madagascar south"), ("dakar", "calcanhar"), ("dakar", "recife"),
    ("recife", "calcanhar"), ("BRSSZ", "cabo frio", "recife"), ("BRSSZ", "cape west"),
    ("cabo frio", "cape west"), ("cape west", "calcanhar"),
    ("calcanhar", "guyana", "tobago", "guajira", "colon"), ("calcanhar", "hatteras"),
    ("calcanhar", "nantucket"), ("calcanhar", "mona"),
    ("ushant", "grand banks", "nantucket", "USNYC", "hatteras", "USSAV", "canaveral", "biscayne",
     "key west", "tortugas", "USHOU", "yucatan channel", "cayman west", "colon", "balboa"),
    ("grand banks", "hatteras"), ("st vincent", "nantucket"), ("st vincent", "hatteras"),
    ("canaries", "mona"), ("st vincent", "mona"), ("ushant", "mona"), ("hatteras", "mona"),
    ("nantucket", "mona"), ("USSAV", "mona", "colon"), ("hatteras", "canaveral"),
    ("tortugas", "yucatan channel"), ("dakar", "mona"),
    ("balboa", "mala", "coiba", "papagayo", "tehuantepec", "petacalco", "MXZLO", "corrientes",
     "san lucas", "eugenia", "san clemente", "USLGB", "USLAX", "santa barbara", "conception"),
    ("san clemente", "USLAX"), ("mendocino", "juan de fuca", "victoria", "haro", "CAVAN"),
    ("petacalco", "corrientes"),
)
# fmt: on


@cache
def _shortest() -> tuple[list[Point], list[list[int]]]:
    """Returns all points, ports first, and for each pair the next point on the way.

    The ways are found with the algorithm of Floyd and Warshall.
    """
    names = [port.id for port in PORTS] + list(WAYPOINTS)
    points = [port.fairway for port in PORTS] + list(WAYPOINTS.values())
    number = {name: i for i, name in enumerate(names)}
    vectors = unit_vectors(*np.array(points).T)
    length = np.full((len(names), len(names)), np.inf)
    step = np.tile(np.arange(len(names)), (len(names), 1))
    for lane in SEA_LANES:
        for a, b in pairwise(lane):
            i, j = number[a], number[b]
            length[i, j] = length[j, i] = angle_between(vectors[i], vectors[j])
    for via in range(len(names)):
        detour = length[:, via, None] + length[None, via, :]
        shorter = detour < length
        length = np.where(shorter, detour, length)
        step = np.where(shorter, step[:, via, None], step)
    return points, step.tolist()


def route(start: int, end: int) -> list[Point]:
    """Returns the points from one port's fairway (by number) to another's, both included."""
    points, step = _shortest()
    way = [start]
    while way[-1] != end:
        way.append(step[way[-1]][end])
    return [points[i] for i in way]
