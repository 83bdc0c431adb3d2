"""The figures of docs/schema.md: how schemas are made, seen to change and followed, by counting.

python -m benchmarks.schema_figures [--quick]: processes that make one table at once, the schema
sensor's looks over a day whose clock is set forward, and a type that changes under synced rows; all
on real servers. Without --quick the page's table is written anew too.
"""

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.mover_vs_trivial_client import connections
from benchmarks.moves import spark_session
from benchmarks.rounds import is_quick, record
from benchmarks.schema_table import table, write_page
from benchmarks.servers import stack
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.routes.bigquery_to_harper import Stores
from bq_harper_assets.stores.bigquery.source import bigquery_source
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.protocols import Source
from bq_harper_assets.sync.schema_sync.drift import LOOK_EVERY, Round, look_around
from bq_harper_assets_tests.defs.drifting import LedgerClock
from bq_harper_assets_tests.stores.racing_tables import race, racing, said_wrong
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync

START, HOUR, MINUTE = utc(2026, 1, 5), timedelta(hours=1), timedelta(minutes=1)
DAY = timedelta(days=1)
ASKED = 8  # connections that describe a table, so that each server thread is asked


@dataclass(frozen=True)
class Size:
    """How much of it."""

    processes: int
    rows: int  # of each of two windows
    day: timedelta


FULL, QUICK = Size(12, 5_000, DAY), Size(3, 200, timedelta(hours=3))


def race_figures(harper: StackAddresses, folder: Path, processes: int) -> dict[str, Any]:
    """Three times at once, each process with columns that the others do not have."""
    table = f"T{uuid.uuid4().hex[:12]}"
    wanted, done = {"event_time"}, []
    with racing(harper, table, f"sqlite:///{folder}/race.db", processes) as racers:
        for letter in "abc":
            wanted |= {f"{letter}{number}_id" for number in range(processes)}
            done.append(race(racers, lambda racer, letter=letter: [f"{letter}{racer}_id"]))
        failed = sum(bool(said) for said in said_wrong(racers))
    seen = set()
    for _ in range(ASKED):
        with HarperClient(connections(harper)[1]) as client:
            found = client.describe_table(table)
        seen.add(frozenset(each.name for each in found.attributes if each.indexed))
    return {
        "processes": processes,
        "times": len(done),
        "errors": failed,
        "tables_made": sum(actions["created"] for actions in done),
        "schemas_at_the_end": len(seen),
        "columns": len(wanted),
        "columns_lost": len(wanted - frozenset.intersection(*seen)),
    }


def drift_figures(sync: Sync, tables: SmallTables, contract: TableContract, size: Size) -> Any:
    """A day of looks by a clock that is set to each; at its end a change directly after a look."""
    ledger, bigquery = sync.stores.ledger, sync.stores.bigquery
    source = f"{contract.source.dataset}.{contract.source.table}"
    known = ledger.find_route(contract.id)

    def opened() -> AbstractContextManager[Source]:
        return bigquery_source(
            bigquery, {"bqh": "drift"}, harper_plan, retry=RetryPolicy(max_retries=0)
        )

    def looks(clock: LedgerClock, lasts: timedelta) -> Iterator[Round]:
        for _ in range(lasts // LOOK_EVERY):
            clock.forward(LOOK_EVERY)
            yield look_around(ledger, opened, [contract], "a benchmark", lambda _: nullcontext())

    def seen_after(clock: LedgerClock) -> float:
        described = tables.queries.client.get_table(source)
        described.schema = [*described.schema, {"name": "later", "type": "STRING"}]
        tables.queries.client.update_table(described, ["schema"])
        newest = ledger.newest_schema(known).version
        for number, _ in enumerate(looks(clock, DAY), start=1):
            if ledger.newest_schema(known).version > newest:
                return number * LOOK_EVERY / MINUTE
        raise AssertionError("a change was not seen within a day")

    with pytest.MonkeyPatch.context() as patch:
        clock = LedgerClock(patch)
        found = list(looks(clock, size.day))
        seen = seen_after(clock)
    return {
        "minutes_between_looks": LOOK_EVERY / MINUTE,
        "looks_a_day": sum(bool(each.looked_at) for each in found),
        "calls_a_look": max(each.calls for each in found),
        "seen_at_most_min_idle": seen,
    }


def type_figures(sync: Sync, tables: SmallTables, rows: int) -> tuple[TableContract, Any]:
    """Rows of an hour are synced, their column becomes text, and those of the next hour follow."""
    source = tables.make_from(_rows("n", rows))
    contract = sync.contract(source, key=["number"], slices=1)
    hours = [sync.cells(contract, at, at + HOUR) for at in (START, START + HOUR)]
    sync.run(contract, hours[0])
    tables.run(f"CREATE OR REPLACE TABLE {source.sql} AS {_rows('CAST(n AS STRING)', rows)}")
    known = sync.stores.ledger.find_route(contract.id)
    recorded = sync.stores.ledger.newest_schema(known).version
    seen_by_sync = sync.run(contract, hours[1]).schema_version - recorded
    held = {row["number"]: row for row in sync.rows(contract)}
    old, new = range(rows), range(rows, 2 * rows)
    lost = [n for n in old if held.get(n, {}).get("speed") != n]
    lost += [n for n in new if held.get(n, {}).get("speed_v2") != str(n)]
    return contract, {
        "rows": 2 * rows,
        "rows_lost": 2 * rows - len(held),
        "values_lost": len(lost),
        "versions_recorded_by_the_next_sync": seen_by_sync,
        "poll_interval_s": contract.sync.poll_interval / 1000,
    }


def _rows(speed: str, rows: int) -> str:
    """So many in each of two hours."""
    step = int(HOUR.total_seconds() * 1_000_000) // rows
    return (
        f"SELECT n AS number, {speed} AS speed, TIMESTAMP_ADD(TIMESTAMP '{START:%F %T}+00',"
        f" INTERVAL n * {step} MICROSECOND) AS ts FROM UNNEST(GENERATE_ARRAY(0, {2 * rows - 1})) n"
    )


def measure(size: Size, *, keep: bool) -> None:
    """Prints and keeps counts, no rates: a real Harper takes part."""
    with (
        tempfile.TemporaryDirectory() as folder,
        stack("schema-figures", threads=2) as addresses,
        spark_session() as spark,
        open_ledger(f"sqlite:///{Path(folder) / 'ledger.db'}") as ledger,
    ):
        bigquery, harper = connections(addresses)
        raced = race_figures(addresses, Path(folder), size.processes)
        with HarperClient(harper) as client:
            sync = Sync(Stores(bigquery, harper, ledger), spark, client)
            tables = SmallTables.at(bigquery)
            contract, types = type_figures(sync, tables, size.rows)
        drift = drift_figures(sync, tables, contract, size)
    figures = {"race": raced, "drift": drift, "type_change": types}
    record("schema_figures", "Schemas, counted", table(figures), figures, keep=keep)
    if keep:
        write_page(figures)


def main() -> None:
    """Read the arguments and measure."""
    quick = is_quick(__doc__)
    measure(QUICK if quick else FULL, keep=not quick)


if __name__ == "__main__":
    main()
