"""Memory of a task by the number of rows it moves: it should not grow.

python -m benchmarks.task_memory [--quick]: each pass is a process of its own that does what a Spark
worker does, without Spark: streams in Arrow, rows to a sink, and what goes back to Spark let go.
"""

import argparse
import resource
import subprocess
import sys

from benchmarks.moves import move_of
from benchmarks.rounds import Ratio, record
from benchmarks.sink import ROOT, sink
from benchmarks.streams import TIME, Span, stream_server
from bq_harper_assets.sync.spark.receipts import Receipt
from bq_harper_assets.sync.write.write_task import Task

FEW, MANY, QUICK_MANY = 100_000, 5_000_000, 500_000
ROUNDS = 3
PASS = "--pass"


def one_pass(rows: int) -> None:
    """Prints the peak in MiB."""
    span = Span(rows, 1)
    with stream_server() as (source, _), sink(f'"{TIME}":') as (target, _):
        move = move_of(span, source, target)
        for batch in Task(move).run(span.streams):
            last = batch
    receipt = Receipt.loads(last.column("receipt")[0].as_py())
    assert sum(tally.written for tally in receipt.tallies.values()) == rows
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def peak_mib(rows: int) -> float:
    """Of a new process."""
    command = [sys.executable, "-m", "benchmarks.task_memory", PASS, str(rows)]
    ended = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return float(ended.stdout)


def measure(few: int, many: int, rounds: int, *, keep: bool) -> None:
    """Few and many rows in turns."""
    pairs = [(peak_mib(few), peak_mib(many)) for _ in range(rounds)]
    growth = Ratio.of(more / less for less, more in pairs)
    peaks = dict(zip((few, many), zip(*pairs, strict=True), strict=True))
    lines = [
        f"Peak resident memory of the Python process that runs one task, {rounds} rounds in turns:",
        "",
        "| rows | MiB at its peak |",
        "|---|---|",
        *(f"| {rows:,} | {', '.join(f'{mib:.0f}' for mib in peaks[rows])} |" for rows in peaks),
        "",
        f"{many // few} times the rows take {growth} times the memory.",
    ]
    figures = {
        "peak_mib": {str(rows): [round(mib, 1) for mib in peaks[rows]] for rows in peaks},
        "growth": vars(growth),
    }
    record("task_memory", "Memory of a task", lines, figures, keep=keep)


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows: does it still run?")
    parser.add_argument(PASS, dest="rows", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.rows:
        one_pass(asked.rows)
    else:
        many = QUICK_MANY if asked.quick else MANY
        measure(FEW, many, 1 if asked.quick else ROUNDS, keep=not asked.quick)


if __name__ == "__main__":
    main()
