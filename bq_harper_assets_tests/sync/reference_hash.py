"""The row hash once more, one Python value at a time, straight from its description."""

import struct
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from hashlib import blake2b
from typing import Any

import pyarrow as pa

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
LANES = (0x243F6A8885A308D3, 0x13198A2E03707344)


def mix(number: int) -> int:
    number &= MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & MASK
    return number ^ (number >> 31)


def key(position: int, lane: int) -> int:
    return mix(position * GOLDEN + LANES[lane])


def seed(name: str, lane: int) -> int:
    digest = blake2b(name.encode(), digest_size=16).digest()
    return int.from_bytes(digest[lane * 8 : lane * 8 + 8], "little")


def row_hash(row: Mapping[str, Any], lane: int = 0) -> int:
    total = LANES[lane]
    for name, value in row.items():
        if value is not None and value != []:
            total += mix(mix(value_of(value, lane) + LANES[lane]) ^ seed(name, lane))
    return mix(total)


def value_of(value: Any, lane: int) -> int:
    if isinstance(value, Mapping):
        return row_hash(value, lane)
    if isinstance(value, list):
        return _list(value, lane)
    if isinstance(value, str):
        return _bytes(value.encode(), lane)
    if isinstance(value, bytes):
        return _bytes(value, lane)
    if isinstance(value, Decimal):
        return _bytes(decimal_text(value).encode(), lane)
    if isinstance(value, pa.MonthDayNano):
        return _bytes(struct.pack("<iiq", *value), lane)
    return _number(value) & MASK


def decimal_text(value: Decimal) -> str:
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _number(value: Any) -> int:
    if isinstance(value, float):
        if value != value:
            return 0x7FF8000000000000
        return int.from_bytes(struct.pack("<d", 0.0 if value == 0 else value), "little")
    if isinstance(value, datetime):
        since = value.replace(tzinfo=None) - datetime(1970, 1, 1)  # noqa: DTZ001
        return (since.days * 86400 + since.seconds) * 10**6 + since.microseconds
    if isinstance(value, date):
        return value.toordinal() - date(1970, 1, 1).toordinal()
    if isinstance(value, time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond
    return int(value)


def _bytes(value: bytes, lane: int) -> int:
    total = len(value) * GOLDEN + LANES[lane]
    for at in range(0, len(value), 8):
        total += mix(int.from_bytes(value[at : at + 8], "little") ^ key(at // 8, lane))
    return mix(total)


def _list(values: list[Any], lane: int) -> int:
    total = len(values) * GOLDEN + LANES[lane]
    for at, value in enumerate(values):
        if value is None:
            total += key(at, lane)
        else:
            total += mix(mix(value_of(value, lane) + LANES[lane]) ^ key(at, lane))
    return mix(total)
