"""Rows of the source that lie in no window are never copied; the last check has counted them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from bq_harper_assets.contract.table import TableContract

if TYPE_CHECKING:
    from bq_harper_assets.ledger.ledger import Ledger

ENTRIES = 1_000  # of the audit that are looked through: a proof leaves one per differing cell


@dataclass(frozen=True)
class OutsideRows:
    """A progress check counted these rows."""

    at: datetime
    without_time: int
    before_start: int
    in_future: int


def outside_rows(contract: TableContract, ledger: "Ledger") -> OutsideRows | None:
    """Reads the counts of the newest check that could ask BigQuery; None if there is none."""
    table = ledger.find_route(contract.id)
    for entry in ledger.audit(table, ENTRIES, kind="validation") if table else ():
        progress = entry.detail.get("checks", {}).get("progress", {})
        figures = progress.get("metadata", {})
        if "rows_without_time" in figures:
            return OutsideRows(
                entry.at,
                figures["rows_without_time"],
                figures["rows_before_start"],
                figures["rows_in_future"],
            )
    return None


def outside_lines(contract: TableContract, ledger: "Ledger") -> Iterator[str]:
    """Writes a line for each kind of rows outside that there are any of."""
    if found := outside_rows(contract, ledger):
        yield from outside_row_lines(contract.timestamp_column, found)


def outside_row_lines(column: str, found: OutsideRows) -> Iterator[str]:
    """Tells in a line each how many rows lie outside all windows, and what becomes of them."""
    as_of = f"as of {found.at:%F %T} UTC"
    for count, what, then in (
        (found.without_time, f"without {column}", "give them one in BigQuery, and they are synced"),
        (found.before_start, "older than the first window", "startTimestamp leaves them out"),
        (found.in_future, f"with a {column} in the future", "they are synced when it has come"),
    ):
        if count:
            rows = "row" if count == 1 else "rows"
            yield f"  not copied: {count:,} {rows} {what} ({as_of}); {then}"
