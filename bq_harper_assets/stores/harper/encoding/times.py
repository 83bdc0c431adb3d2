"""Times are ISO 8601 text of fixed width, because Harper's range searches compare text."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bq_harper_assets.sync.arrays.arrow_memory import Int64s, fixed_width, null_mask, text_of_width

_DAY = 86_400_000_000  # microseconds
_TWO = np.array([list(b"%02d" % n) for n in range(100)], np.uint8).view("V2")[:, 0]
_THREE = np.array([list(b"%03d" % n) for n in range(1000)], np.uint8).view("V3")[:, 0]
_DATE = {"century": ("V2", 0), "year": ("V2", 2), "month": ("V2", 5), "day": ("V2", 8)}
_TIME = {
    "hour": ("V2", 0),
    "minute": ("V2", 3),
    "second": ("V2", 6),
    "millis": ("V3", 9),
    "micros": ("V3", 12),
}
_MOMENT = {"date": ("V10", 0)} | {name: (width, at + 11) for name, (width, at) in _TIME.items()}


def timestamp_texts(array: pa.Array) -> pa.StringArray:
    """Writes instants such as 2026-11-16T07:00:00.000000Z, in 27 characters."""
    return _moments(array, b"0000-00-00T00:00:00.000000Z")


def datetime_texts(array: pa.Array) -> pa.StringArray:
    """Writes local times such as 2026-11-16T07:00:00.000000, in 26 characters."""
    return _moments(array, b"0000-00-00T00:00:00.000000")


def date_text(array: pa.Array) -> pa.StringArray:
    """Writes dates such as 2026-11-16, in 10 characters."""
    return _text(_dates(_values(array, pa.date32(), np.int32)), array)


def time_texts(array: pa.Array) -> pa.StringArray:
    """Writes times of day such as 07:00:00.000000, in 15 characters."""
    out = _blank(len(array), b"00:00:00.000000", _TIME)
    _write_time(out, _values(array, pa.time64("us"), np.int64))
    return _text(out, array)


def _values(array: pa.Array, type_: pa.DataType, dtype: type) -> Int64s:
    """Returns the values as int64, with 0 for NULL: what is stored under it may be no date."""
    values = fixed_width(array.cast(type_), dtype).astype(np.int64)
    nulls = null_mask(array)
    if nulls is not None:
        values[nulls] = 0
    return values


def _moments(array: pa.Array, template: bytes) -> pa.StringArray:
    micros = _values(array, pa.timestamp("us", array.type.tz), np.int64)
    days = micros // _DAY
    out = _blank(len(array), template, _MOMENT)
    out["date"] = _dates(days)
    _write_time(out, micros - days * _DAY)
    return _text(out, array)


def _dates(days: Int64s) -> NDArray[Any]:
    if len(days) == 0:
        return _each_date(days)
    first, last = int(days.min()), int(days.max())
    if last - first > len(days):
        return _each_date(days)
    # Rows of a window share few days: each day is written once.
    return _each_date(np.arange(first, last + 1))[days - first]


def _each_date(days: Int64s) -> NDArray[Any]:
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    number = months.astype(np.int64) + 1970 * 12
    out = _blank(len(days), b"0000-00-00", _DATE)
    out["century"] = _TWO[number // 1200]
    out["year"] = _TWO[number // 12 % 100]
    out["month"] = _TWO[number % 12 + 1]
    out["day"] = _TWO[(dates - months.astype("datetime64[D]")).astype(np.int64) + 1]
    return out.view("V10")


def _write_time(out: NDArray[Any], micros: Int64s) -> None:
    # Division is the cost here; 32 bits, which are faster, suffice for all but the first.
    seconds = (micros // 1_000_000).astype(np.uint32)
    fraction = (micros - seconds * np.int64(1_000_000)).astype(np.uint32)
    minutes = seconds // np.uint32(60)
    hours = minutes // np.uint32(60)
    millis = fraction // np.uint32(1000)
    out["hour"] = _TWO[hours]
    out["minute"] = _TWO[minutes - hours * np.uint32(60)]
    out["second"] = _TWO[seconds - minutes * np.uint32(60)]
    out["millis"] = _THREE[millis]
    out["micros"] = _THREE[fraction - millis * np.uint32(1000)]


def _blank(count: int, template: bytes, places: dict[str, tuple[str, int]]) -> NDArray[Any]:
    """Copies a template so that its digits can be written column by column, many bytes at once."""
    layout = np.dtype(
        {
            "names": list(places),
            "formats": [width for width, _ in places.values()],
            "offsets": [at for _, at in places.values()],
            "itemsize": len(template),
        }
    )
    blank = np.empty((count, len(template)), np.uint8)
    blank[:] = np.frombuffer(template, np.uint8)
    return blank.reshape(-1).view(layout)


def _text(records: NDArray[Any], array: pa.Array) -> pa.StringArray:
    return text_of_width(
        records.view(np.uint8).reshape(len(array), records.itemsize), null_mask(array)
    )
