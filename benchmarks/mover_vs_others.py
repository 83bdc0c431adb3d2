"""The mover against what a user would write instead, all into a sink that only reads.

python -m benchmarks.mover_vs_others [--quick] [--dlt-python PYTHON]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from benchmarks.moves import move_of, spark_session
from benchmarks.processes import cpu_seconds
from benchmarks.rounds import Cost, in_turns, ratios, record
from benchmarks.sink import sink
from benchmarks.streams import TIME, Span, batches, stream_server
from bq_harper_assets.sync.write.write_job import write_all
from bq_harper_assets.sync.write.write_task import WriteJob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS = 2
ROWS, QUICK_ROWS = 300_000, 60_000
ROUNDS = 3
WARM_ROUNDS = 2  # the JVM compiles what it runs often
ROWS_PER_REQUEST = 650  # as many as the mover puts into 256 KB
MOVER, PLAIN, DLT = "mover", "plain Spark", "dlt"


def write_parquet(span: Span, folder: Path) -> None:
    """The rows of the streams, a file each: the best source that Spark and dlt could have."""
    for number, stream in enumerate(span.streams):
        parts = batches(stream)
        first = next(parts)
        with pq.ParquetWriter(folder / f"{number}.parquet", first.schema) as file:
            file.write_batch(first)
            for batch in parts:
                file.write_batch(batch)


def plain_writer(url: str) -> Callable[[Iterable[Any]], None]:
    """What stands in many a notebook: a dict per row, json.dumps and requests."""

    def write(rows: Iterable[Any]) -> None:
        import requests

        with requests.Session() as session:

            def post(records: list[dict[str, Any]]) -> None:
                asked = {"operation": "upsert", "table": "Positions", "records": records}
                content = json.dumps(asked, default=str)
                session.post(url, data=content, timeout=60).raise_for_status()

            waiting: list[dict[str, Any]] = []
            for row in rows:
                waiting.append(row.asDict())
                if len(waiting) == ROWS_PER_REQUEST:
                    post(waiting)
                    waiting = []
            if waiting:
                post(waiting)

    return write


def moved(spark: "SparkSession", job: WriteJob, rows: int, servers: tuple[int, ...]) -> Cost:
    """One job of the mover."""
    began, cpu = time.perf_counter(), cpu_seconds(servers)
    found = write_all(spark, job)
    cost = Cost(rows, time.perf_counter() - began, cpu_seconds(servers) - cpu)
    assert sum(t.written for r in found.receipts for t in r.tallies.values()) == rows
    return cost


def posted(spark: "SparkSession", folder: Path, url: str, servers: tuple[int, ...]) -> Cost:
    """One job of the plain writer."""
    frame = spark.read.parquet(str(folder))
    rows = frame.count()
    began, cpu = time.perf_counter(), cpu_seconds(servers)
    frame.foreachPartition(plain_writer(url))
    return Cost(rows, time.perf_counter() - began, cpu_seconds(servers) - cpu)


def loaded(python: str, parquet: Path, url: str, rows: int) -> Cost:
    """One pipeline run of dlt, its imports not counted."""
    with tempfile.TemporaryDirectory() as folder:
        script = str(Path(__file__).with_name("dlt_writer.py"))
        ended = subprocess.run(
            [python, script, str(parquet), url, folder], check=True, capture_output=True, text=True
        )
    cost = Cost(**json.loads(ended.stdout.splitlines()[-1]))
    assert cost.rows == rows
    return cost


def has_dlt(python: str) -> bool:
    """Whether that Python can import dlt."""
    return subprocess.run([python, "-c", "import dlt"], capture_output=True).returncode == 0


def measure(rows: int, rounds: int, dlt_python: str, *, keep: bool) -> None:
    """All ways in turns, once Spark is warm."""
    span, whole = Span(rows, TASKS), Span(rows, 1)
    with (
        tempfile.TemporaryDirectory() as place,
        stream_server() as (source, source_pid),
        sink(f'"{TIME}":') as (target, sink_pid),
        spark_session(TASKS) as spark,
    ):
        for each, name in ((span, "parts"), (whole, "whole")):
            (Path(place) / name).mkdir()
            write_parquet(each, Path(place) / name)
        servers = (source_pid, sink_pid)
        move = move_of(span, source, target)
        parts, one = Path(place) / "parts", Path(place) / "whole" / "0.parquet"
        ways = {
            MOVER: lambda: moved(spark, move, rows, servers),
            PLAIN: lambda: posted(spark, parts, target.url, servers),
        }
        in_turns(ways, WARM_ROUNDS)
        if has_dlt(dlt_python):
            ways[DLT] = lambda: loaded(dlt_python, one, target.url, rows)
        costs = in_turns(ways, rounds)
    lines = [
        f"{rows:,} rows of 16 columns into a sink that only reads, {rounds} rounds in turns.",
        "Processor time is that of the sender: driver, JVM and Python workers, or dlt's process.",
        "The others read Parquet; the mover reads Arrow over gRPC as BigQuery's service sends it,",
        "and also makes ids, row hashes, digests and receipts, and counts distinct ids.",
        "",
        "| against | rows/s, mover over it (target: 2 or more) |"
        " CPU per row, mover over it (target: 0.5 or less) |",
        "|---|---|---|",
    ]
    figures: dict[str, Any] = {"rows": rows, "rounds": rounds}
    for name in (PLAIN, DLT):
        if name not in costs:
            lines.append(f"| {name} | not measured: it is not installed | |")
            continue
        rate = ratios(costs, MOVER, name, lambda cost: cost.rate)
        cpu = ratios(costs, MOVER, name, lambda cost: cost.cpu_per_row)
        lines.append(f"| {name} | {rate} | {cpu} |")
        figures[name] = {"rate": vars(rate), "cpu_per_row": vars(cpu)}
    title = "The mover against what a user would write instead"
    record("mover_vs_others", title, lines, figures, keep=keep)


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows: does it still run?")
    parser.add_argument("--dlt-python", default=sys.executable, help="a Python that has dlt")
    asked = parser.parse_args()
    rows, rounds = (QUICK_ROWS, 1) if asked.quick else (ROWS, ROUNDS)
    measure(rows, rounds, asked.dlt_python, keep=not asked.quick)


if __name__ == "__main__":
    main()
