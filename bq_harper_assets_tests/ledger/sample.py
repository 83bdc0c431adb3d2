"""A small table, its cells and what moving them gives."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import (
    Batch,
    CellKey,
    CellResult,
    Leases,
    Mode,
    Rejection,
    RouteFacts,
    Wanted,
)

LetTimePass = Callable[[timedelta], None]
START = datetime(2026, 11, 16, tzinfo=UTC)
HOUR = timedelta(hours=1)
T = START + timedelta(days=1)
TTL = timedelta(minutes=10)
FACTS = RouteFacts(
    name="positions",
    table="positions",
    source="fleet.positions",
    target="Positions",
    timestamp_column="ts",
    key=("mmsi", "ts"),
    window=HOUR,
    slices=4,
)


def cell(hour: int = 0, slice: int = 0) -> CellKey:
    """The cell of that hour."""
    return CellKey.of_window(START + hour * HOUR, START + (hour + 1) * HOUR, slice)


def copy(key: CellKey, fingerprint: str = "fp") -> Wanted:
    """The cell, in copy mode if it may."""
    return Wanted(cell=key, mode=Mode.COPY, fingerprint=fingerprint)


def result(rows: int = 10, *rejections: Rejection, digest: str = "digest") -> CellResult:
    """All rows written but the rejected ones."""
    return CellResult(
        read=rows,
        written=rows - len(rejections),
        unchanged=0,
        quarantined=len(rejections),
        digest=digest,
        bytes=100 * rows,
        seconds=0.5,
        rejections=rejections,
    )


def commit_cell(ledger: Ledger, leases: Leases, batch: Batch, done: CellResult) -> None:
    """One cell in a transaction of its own."""
    ledger.commit_cells(leases, [(batch, done)])
