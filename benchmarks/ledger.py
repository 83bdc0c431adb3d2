"""What the ledger costs per cell: `python benchmarks/ledger.py [URL]`, else on a new SQLite."""

import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta

from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.records import CellKey, CellResult, Mode, RouteFacts, Wanted

WINDOWS, SLICES = 96, 4
WINDOW = timedelta(minutes=15)
START = datetime(2026, 11, 16, tzinfo=UTC)
TTL = timedelta(minutes=10)


def measure(ledger: Ledger) -> None:
    """Prints milliseconds per cell: first plan, commits one by one, plan again, commits at once."""
    name = f"benchmark {time.time_ns()}"
    facts = RouteFacts(
        name=name,
        table=name,
        source="source",
        target=name,
        timestamp_column="ts",
        key=(),
        window=WINDOW,
        slices=SLICES,
    )
    table = ledger.register_route(facts)
    ledger.record_schema(table, {"columns": ["ts"]}, 0)
    leases = ledger.acquire(table, range(SLICES), "benchmark", TTL)
    starts = [START + number * WINDOW for number in range(WINDOWS)]
    cells = [
        CellKey.of_window(start, start + WINDOW, slice)
        for start in starts
        for slice in range(SLICES)
    ]
    wanted = [Wanted(cell=cell, mode=Mode.COPY, fingerprint="fingerprint") for cell in cells]
    result = CellResult(read=1000, written=1000, unchanged=0, quarantined=0, digest="digest")

    began = time.perf_counter()
    batches = ledger.plan(leases, START, 1, wanted, "run")
    began = _print("plan", began)
    for batch in batches:
        ledger.commit_cells(leases, [(batch, result)])
    began = _print("commit one by one", began)
    batches = ledger.plan(leases, START, 1, wanted, "run")
    began = _print("plan again", began)
    ledger.commit_cells(leases, [(batch, result) for batch in batches])
    began = _print("commit all at once", began)
    ledger.progress(table, START)
    _print("progress", began)


def _print(step: str, began: float) -> float:
    now = time.perf_counter()
    print(f"{step:20s}{1000 * (now - began) / (WINDOWS * SLICES):8.2f} ms per cell")
    return now


def main() -> None:
    """On the URL given, or on a file that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        url = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{folder}/ledger.db"
        with open_ledger(url) as ledger:
            measure(ledger)


if __name__ == "__main__":
    main()
