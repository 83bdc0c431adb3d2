"""A whole run of the mover against a client that only posts, into the same real Harper.

python -m benchmarks.mover_vs_trivial_client [--quick]. The client posts the same bytes, encoded
beforehand, with as many requests in flight: what moves rows can hardly be faster. Only the ratio is
printed and kept: Harper's licence does not allow its figures to be published.
"""

import argparse
import base64
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import SecretStr

from benchmarks.moves import SLICES, spark_session
from benchmarks.parts_of_a_run import MOVE, WHOLE, timed
from benchmarks.rounds import Cost, Ratio, in_turns, ratios, record
from benchmarks.servers import stack
from benchmarks.sink import keeping_sink
from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.maritime.initialize import SCENARIOS, Sample, Scenario
from bq_harper_assets.maritime.reports import microseconds
from bq_harper_assets.maritime.tables import POSITIONS
from bq_harper_assets.maritime.warehouse import Warehouse
from bq_harper_assets.routes.bigquery_to_harper import BigQueryToHarper, Stores
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets.sync.turn.turn import Turn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, QUICK_ROWS = 120_000, 20_000
ROUNDS = 3
TARGET = 0.85
DATASET = "maritime"
DAY = timedelta(days=1)
MOVER, TRIVIAL = "mover", "trivial client"


@dataclass(frozen=True, kw_only=True)
class Bench:
    """One source, and a new target for each pass; all names are of one length."""

    bigquery: BigQueryConnection
    harper: HarperConnection
    spark: "SparkSession"
    cells: list[Cell]
    folder: Path
    numbers: "count[int]" = field(default_factory=count)
    moving: list[float] = field(default_factory=list)  # the share of each run that is its move

    def whole_run(self) -> Cost:
        """Lease, schema, fingerprint, plan, move, commit."""
        spent: dict[str, float] = {}
        with timed(spent):
            cost = self._run(self.harper, self._new_name())
        self.moving.append(spent[MOVE] / spent[WHOLE])
        return cost

    def caught(self) -> list[bytes]:
        """The request bodies of a run, with {table} still to be named."""
        name = self._new_name()
        with keeping_sink(f'"{POSITIONS.day_column}":') as (sink, kept):
            in_flight = self.harper.requests_in_flight
            self._run(sink.model_copy(update={"requests_in_flight": in_flight}), name)
        return [
            body.replace(name.encode(), b"{table}", 1) for body in kept if name.encode() in body
        ]

    def only_posts(self, bodies: list[bytes], rows: int) -> Cost:
        """All bodies into a table like the mover's."""
        name = self._new_name()
        with HarperClient(self.harper) as client:
            like = client.describe_table("T00000")
            assert like is not None
            client.create_table(name, like.primary_key, like.attributes)
        named = [body.replace(b"{table}", name.encode(), 1) for body in bodies]
        threads = self.harper.requests_in_flight or 1
        with ThreadPoolExecutor(threads) as pool:
            began = time.perf_counter()
            list(pool.map(self._post, [named[first::threads] for first in range(threads)]))
            return Cost(rows, time.perf_counter() - began)

    def _post(self, bodies: list[bytes]) -> None:
        pair = f"{self.harper.user}:{self.harper.password.get_secret_value()}"
        login = "Basic " + base64.b64encode(pair.encode()).decode()
        headers = {"Content-Type": "application/json", "Authorization": login}
        line = HTTPConnection(urlsplit(self.harper.url).netloc)
        for body in bodies:
            line.request("POST", "/", body, headers)
            answer = line.getresponse()
            assert answer.status == 200, answer.read()
            answer.read()
        line.close()

    def _run(self, harper: HarperConnection, name: str) -> Cost:
        contract = TableContract(
            id=name,
            dataset=DATASET,
            table=POSITIONS.name,
            timestamp_column=POSITIONS.day_column,
            target_table=name,
            slices=SLICES,
        )
        # A ledger each: the sink's Harper is not the real one.
        with open_ledger(f"sqlite:///{self.folder / name}.db") as ledger:
            stores = Stores(self.bigquery, harper, ledger)
            began = time.perf_counter()
            report = Turn(
                route=BigQueryToHarper(stores, contract), spark=self.spark, run_id=name
            ).sync(self.cells)
            return Cost(report.rows, time.perf_counter() - began)

    def _new_name(self) -> str:
        return f"T{next(self.numbers):05}"


def make_source(bigquery: BigQueryConnection, rows: int, end: datetime) -> None:
    """The sample positions of the day before `end`."""
    warehouse = Warehouse(bigquery, DATASET)
    warehouse.make()
    size = Scenario(
        positions=rows,
        events=0,
        vessels=SCENARIOS["realistic"].vessels,
        span=DAY // timedelta(microseconds=1),
    )
    for table in Sample(size, 7, microseconds(end)).positions():
        warehouse.append(POSITIONS.name, table)


def connections(addresses: StackAddresses) -> tuple[BigQueryConnection, HarperConnection]:
    """With one request in flight per server thread."""
    password = addresses.harper_password_file.read_text(encoding="ascii")
    harper = HarperConnection(
        url=addresses.harper_url, user=addresses.harper_user, password=SecretStr(password)
    )
    with HarperClient(harper) as client:
        threads = client.server_threads()
    bigquery = BigQueryConnection(
        project=addresses.bigquery_project,
        endpoint=addresses.bigquery_url,
        storage_endpoint=addresses.bigquery_storage,
    )
    return bigquery, harper.model_copy(update={"requests_in_flight": threads})


def measure(rows: int, rounds: int, *, keep: bool) -> None:
    """Both in turns; the first pass of each is not counted."""
    end = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    with (
        tempfile.TemporaryDirectory() as folder,
        stack("trivial-client") as addresses,
        spark_session() as spark,
    ):
        bigquery, harper = connections(addresses)
        make_source(bigquery, rows, end)
        windows = windows_between(end - DAY, end, timedelta(hours=1))
        cells = [Cell(window, part) for window in windows for part in range(SLICES)]
        bench = Bench(
            bigquery=bigquery, harper=harper, spark=spark, cells=cells, folder=Path(folder)
        )
        moved = bench.whole_run().rows
        bodies = bench.caught()
        ways = {MOVER: bench.whole_run, TRIVIAL: lambda: bench.only_posts(bodies, moved)}
        costs = in_turns(ways, rounds)
    ratio = ratios(costs, MOVER, TRIVIAL, lambda cost: cost.rate)
    pairs = zip(costs[MOVER], costs[TRIVIAL], bench.moving[1:], strict=True)
    moving = Ratio.of(our.rate / share / their.rate for our, their, share in pairs)
    lines = [
        f"{moved:,} positions in {len(cells)} cells into a real Harper; a whole run (lease, schema,"
        " fingerprint, plan, move, commit) on a warm Spark against a client that posts the same"
        f" bytes, with {harper.requests_in_flight} in flight; {rounds} rounds in turns.",
        "",
        f"Rows per second, mover over client: **{ratio}**, target {TARGET} or more.",
        "",
        f"The Spark job alone, without what comes before and after it: {moving}.",
        "",
        "BigQuery's emulator and Spark share the processor with Harper here.",
    ]
    figures = {"rows": moved, "cells": len(cells), "ratio": vars(ratio), "job_alone": vars(moving)}
    title = "The mover against a client that only posts"
    record("mover_vs_trivial_client", title, lines, figures, keep=keep)


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows: does it still run?")
    quick = parser.parse_args().quick
    measure(QUICK_ROWS if quick else ROWS, 1 if quick else ROUNDS, keep=not quick)


if __name__ == "__main__":
    main()
