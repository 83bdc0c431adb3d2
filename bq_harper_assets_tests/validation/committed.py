"""Cells that the ledger calls synced, as after a run, and rows as a run stores them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import (
    Batch,
    CellKey,
    CellResult,
    Leases,
    LedgerRoute,
    Mode,
    Wanted,
)
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.encoding.text_forms import stored_text
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets_tests.schema.samples import contract, schema

DAY = datetime(2026, 1, 5, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NUMBER = Column(name="number", kind=Kind.INT64)


def ships(**declared: Any) -> TableContract:
    """Of five-minute windows from DAY on, in one slice."""
    known = {"window": "5m", "slices": 1, "key": ["number"], "sync": {"start_timestamp": DAY}}
    return contract(**(known | declared))


def registered(ledger: Ledger, known: TableContract) -> LedgerRoute:
    """Its route, with a schema that has the column `number` besides the time."""
    route = ledger.register_route(table_facts(known, "p"))
    seen = ledger.newest_schema(route)
    body = harper_plan(known, schema(NUMBER)).version.body()
    ledger.record_schema(route, body, seen.version if seen else 0)
    return route


def begun(
    ledger: Ledger,
    known: TableContract,
    begin: float,
    end: float,
    slices: Sequence[int] = (0,),
    **wanted: Any,
) -> tuple[Leases, tuple[Batch, ...]]:
    """Planned, as far as a run gets that is killed; times are minutes after DAY."""
    route = registered(ledger, known)
    leases = ledger.acquire(route, slices, "run", 3 * MINUTE)
    windows = windows_between(DAY + begin * MINUTE, DAY + end * MINUTE, known.window)
    cells = [
        Wanted(
            cell=CellKey.of_window(each.start, each.end, part),
            mode=Mode.COPY,
            fingerprint="fingerprint",
            **wanted,
        )
        for each in windows
        for part in slices
    ]
    return leases, ledger.plan(leases, ledger.now(), 1, cells, "run")


def committed(
    ledger: Ledger,
    known: TableContract,
    begin: float,
    end: float,
    slices: Sequence[int] = (0,),
    rows: int = 1,
    **wanted: Any,
) -> LedgerRoute:
    """Every window of these minutes is synced."""
    leases, batches = begun(ledger, known, begin, end, slices, **wanted)
    done = CellResult(read=rows, written=rows, unchanged=0, quarantined=0, digest="digest")
    ledger.commit_cells(leases, [(batch, done) for batch in batches])
    ledger.release(leases)
    return leases.route


def at(minute: float) -> str:
    """The time of so many minutes after DAY, as a run stores it."""
    return stored_text(DAY + minute * MINUTE)
