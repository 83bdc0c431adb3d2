"""Stores instants and arbitrary text, and asks the database for the time."""

import re
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Connection, Dialect, Text, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator

from bq_harper_assets.instants import MICROSECOND, instant_at, micros_at

_UNSTORABLE = re.compile("[\\\\\x00\ud800-\udfff]")
_ESCAPED = re.compile(r"\\u([0-9a-f]{4})")


def duration_micros(duration: timedelta) -> int:
    """Gives the duration as an exact whole number of microseconds."""
    return duration // MICROSECOND


class Instant(TypeDecorator[datetime]):
    """An instant is stored as microseconds since 1970 in UTC, in one order in every database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """Refuses a time without a zone, which would mean another instant on another machine."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone")
        return micros_at(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """Reads the instant in UTC."""
        return None if value is None else instant_at(value)


class AxisPoint(TypeDecorator[int]):
    """A point on the axis of a cut is a whole number; an instant is its microseconds since 1970."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: int | datetime | None, dialect: Dialect) -> int | None:
        """Takes a time for the point of the axis that it is."""
        return micros_at(value) if isinstance(value, datetime) else value


class AnyText(TypeDecorator[str]):
    """Any Python string can be stored: rows may hold NUL and lone surrogates.

    PostgreSQL takes no NUL, and UTF-8 has no lone surrogates.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Writes the few characters that cannot be stored, and the backslash, as \\uXXXX."""
        if value is None:
            return None
        return _UNSTORABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        """Reads the text as it was given."""
        if value is None:
            return None
        return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), value)


class _DatabaseNow(FunctionElement[datetime]):
    type = Instant()
    inherit_cache = True
    name = "database_now"


@compiles(_DatabaseNow, "sqlite")
def _sqlite_now(element: _DatabaseNow, compiler: SQLCompiler, **options: Any) -> str:
    # Rounded Julian days are exact to the millisecond; unixepoch('subsec') is too new to rely on.
    return "(CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)"


@compiles(_DatabaseNow, "postgresql")
def _postgresql_now(element: _DatabaseNow, compiler: SQLCompiler, **options: Any) -> str:
    # now() is not used: it stands still in a transaction, and a lease may expire during a wait.
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"


def database_now(connection: Connection) -> datetime:
    """Reads the database's clock, which all owners share; their own clocks may differ."""
    now: datetime = connection.execute(select(_DatabaseNow())).scalar_one()
    return now
