"""Restricts the rows that are read to a half-open range of time and the contract's condition."""

from collections.abc import Sequence
from datetime import UTC, datetime

from bq_harper_assets.contract.identifiers import quoted
from bq_harper_assets.instants import first_day_from
from bq_harper_assets.schema.logical import Column, Kind


def between(column: Column, start: datetime, end: datetime, row_filter: str | None = None) -> str:
    """Makes SQL for rows whose time is in [start, end) and for which the filter is true."""
    name = quoted(column.name)
    bounds = f"{name} >= {literal(column.kind, start)} AND {name} < {literal(column.kind, end)}"
    return with_filter(bounds, row_filter)


def at_any(column: Column, instants: Sequence[datetime], row_filter: str | None = None) -> str:
    """Makes SQL for rows whose time is one of these and for which the filter is true."""
    values = ", ".join(sorted({literal(column.kind, instant) for instant in instants}))
    return with_filter(f"{quoted(column.name)} IN ({values})", row_filter)


def outside(column: Column, start: datetime, now: datetime, row_filter: str | None = None) -> str:
    """Makes SQL for rows that no window has: without a time, before the start, or in the future."""
    name = quoted(column.name)
    unheld = (
        f"{name} IS NULL OR {name} < {literal(column.kind, start)}"
        f" OR {name} >= {literal(column.kind, now)}"
    )
    return with_filter(unheld, row_filter)


def with_filter(condition: str, row_filter: str | None) -> str:
    """Joins both, each in parentheses, so that an OR in one does not reach into the other."""
    return f"({condition}) AND ({row_filter})" if row_filter else f"({condition})"


def literal(kind: Kind, instant: datetime) -> str:
    """Writes the first value of that type at or after the instant; zoneless types count as UTC."""
    utc = instant.astimezone(UTC)
    text = utc.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
    if kind is Kind.TIMESTAMP:
        return f"TIMESTAMP '{text}+00:00'"
    if kind is Kind.DATETIME:
        return f"DATETIME '{text}'"
    if kind is Kind.DATE:
        return f"DATE '{first_day_from(instant).isoformat()}'"
    raise ValueError(f"a {kind} column says nothing about time")
