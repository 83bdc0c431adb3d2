"""Converts values of one type to another where nothing is lost; every other value becomes None.

Numbers are converted by their exact value, times by their instant in UTC, and every type that has a
text form to and from STRING. A text may write a number or a time in another way than the sync does:
it is still the same value.
"""

import json
import math
import re
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

from bq_harper_assets.schema.logical import OF_SEVERAL_TYPES, Kind
from bq_harper_assets.schema.version import VersionColumn
from bq_harper_assets.stores.harper.encoding.text_forms import stored_text
from bq_harper_assets.stores.harper.types import HARPER_KINDS

_NUMBERS = (Kind.INT64, Kind.FLOAT64, Kind.NUMERIC, Kind.BIGNUMERIC, Kind.BOOL)
_TIMES = (Kind.TIMESTAMP, Kind.DATETIME, Kind.DATE)
_DIGITS = {Kind.NUMERIC: (29, 9), Kind.BIGNUMERIC: (38, 38)}  # digits before and after the point
_LONGEST = 400  # digits: no type has more, and a text may say 1e999999999
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,9})?", re.ASCII)
_CLOCK = r"\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?"
_TIME = re.compile(_CLOCK, re.ASCII)
_DAY = r"\d{4}-\d{2}-\d{2}"
_ZONE = r"(Z|[+-]\d{2}(:\d{2})?)"
_MOMENT = re.compile(rf"{_DAY}([T ]{_CLOCK}{_ZONE}?)?", re.ASCII)


def converted(value: Any, have: VersionColumn, want: VersionColumn) -> Any:
    """Converts a Python value of the column `have` to the type of the column `want`."""
    if want.repeated:
        items = value if have.repeated else [] if value is None else [value]
        return [_single(item, have, want) for item in items]
    if have.repeated:
        return _single(value[0], have, want) if len(value) == 1 else None
    return _single(value, have, want)


def _single(value: Any, have: VersionColumn, want: VersionColumn) -> Any:
    if value is None:
        return None
    if Kind.STRUCT in (have.kind, want.kind):
        return _struct(value, have, want) if have.kind is want.kind else None
    if have.kind is want.kind:
        is_alike = have.kind not in OF_SEVERAL_TYPES or have.source.type == want.source.type
        return value if is_alike else None
    try:
        return _cast(value, have.kind, want.kind)
    except (ValueError, OverflowError, InvalidOperation):
        return None


def _struct(value: dict[str, Any], have: VersionColumn, want: VersionColumn) -> dict[str, Any]:
    had = {field.name: field for field in have.fields}
    return {
        field.source.name: converted(value[field.name], had[field.name], field)
        if field.name in had
        else absent(field)
        for field in want.fields
    }


def absent(column: VersionColumn) -> Any:
    """Gives the value that a row has in a column which it was written without."""
    return [] if column.repeated else None


def _cast(value: Any, have: Kind, want: Kind) -> Any:
    if want is Kind.STRING:
        return _text(value, have)
    if have is Kind.STRING:
        return _of_text(value, want)
    if have in _NUMBERS and want in _NUMBERS:
        return _of_decimal(_decimal(value, have), want)
    if have in _TIMES and want in _TIMES:
        return _of_moment(_moment(value), want)
    return None


def _text(value: Any, kind: Kind) -> str:
    match kind:
        case Kind.BOOL:
            return "true" if value else "false"
        case Kind.BYTES:
            return str(value, "utf-8")
        case Kind.JSON:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return stored_text(value)


def _of_text(text: str, kind: Kind) -> Any:
    match kind:
        case Kind.BOOL:
            return {"true": True, "false": False}.get(text.lower())
        case Kind.INT64 | Kind.FLOAT64 | Kind.NUMERIC | Kind.BIGNUMERIC:
            return _of_decimal(Decimal(text), kind) if _NUMBER.fullmatch(text) else None
        case Kind.TIMESTAMP | Kind.DATETIME | Kind.DATE:
            text = re.sub(" UTC$", "Z", text)
            is_moment = _MOMENT.fullmatch(text)
            return _of_moment(_moment(datetime.fromisoformat(text)), kind) if is_moment else None
        case Kind.TIME:
            return time.fromisoformat(text) if _TIME.fullmatch(text) else None
        case Kind.BYTES:
            return text.encode("utf-8")
        case Kind.JSON:
            return json.loads(text)
    read = HARPER_KINDS[kind].of_text
    return None if read is None else read(text)


def _decimal(value: Any, kind: Kind) -> Decimal:
    return Decimal(repr(value)) if kind is Kind.FLOAT64 else Decimal(value)


def _of_decimal(number: Decimal, kind: Kind) -> Any:
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) > _LONGEST:
        return None
    match kind:
        case Kind.BOOL:
            return bool(number) if number in (0, 1) else None
        case Kind.INT64:
            is_whole = number == number.to_integral_value()
            return int(number) if is_whole and -(2**63) <= number < 2**63 else None
        case Kind.FLOAT64:
            double = float(number)
            is_exact = math.isfinite(double) and Decimal(repr(double)) == number
            return double if is_exact else None
    # abs() is not used, because it rounds to 28 digits.
    whole, _, fraction = stored_text(number).removeprefix("-").partition(".")
    most_whole, most_fraction = _DIGITS[kind]
    return number if len(whole) <= most_whole and len(fraction) <= most_fraction else None


def _moment(value: date) -> datetime:
    """Gives the moment in UTC as a datetime without a zone."""
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


def _of_moment(moment: datetime, kind: Kind) -> Any:
    if kind is Kind.TIMESTAMP:
        return moment.replace(tzinfo=UTC)
    if kind is Kind.DATETIME:
        return moment
    return moment.date() if moment.time() == time() else None
