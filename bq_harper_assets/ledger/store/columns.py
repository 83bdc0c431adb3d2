"""How the ledger stores instants and arbitrary text, and how it asks the database for the time."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Connection, Dialect, Text, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_UNSTORABLE = re.compile("[\\\\\x00\ud800-\udfff]")
_ESCAPED = re.compile(r"\\u([0-9a-f]{4})")


def duration_micros(duration: timedelta) -> int:
    """The duration as a whole number, exactly."""
    return duration // _MICROSECOND


class Instant(TypeDecorator[datetime]):
    """Microseconds since 1970 in UTC: the same order in every database and time zone."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """Refuses a time without a zone, which would mean another instant on another machine."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone")
        return duration_micros(value - _EPOCH)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """In UTC."""
        return None if value is None else _EPOCH + timedelta(microseconds=int(value))


class AnyText(TypeDecorator[str]):
    """Any Python string: PostgreSQL takes no NUL, UTF-8 no lone surrogate; rows may hold both."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """The few characters that cannot be stored, and the backslash, are written as \\uXXXX."""
        if value is None:
            return None
        return _UNSTORABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        """As it was given."""
        if value is None:
            return None
        return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), value)


class _DatabaseNow(FunctionElement[datetime]):
    type = Instant()
    inherit_cache = True
    name = "database_now"


@compiles(_DatabaseNow, "sqlite")
def _sqlite_now(element: _DatabaseNow, compiler: SQLCompiler, **options: Any) -> str:
    # Julian days hold milliseconds exactly once rounded; unixepoch('subsec') is too new to rely on.
    return "(CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)"


@compiles(_DatabaseNow, "postgresql")
def _postgresql_now(element: _DatabaseNow, compiler: SQLCompiler, **options: Any) -> str:
    # Not now(), which stands still in a transaction: a lease may expire while it waits for a lock.
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"


def database_now(connection: Connection) -> datetime:
    """The database's clock, which all owners share; their own clocks may differ."""
    now: datetime = connection.execute(select(_DatabaseNow())).scalar_one()
    return now
