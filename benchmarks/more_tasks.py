"""The same rows in one, two and four tasks, into a sink that only reads: how the mover grows.

python -m benchmarks.more_tasks [--quick]. It stops growing where the cores do, or the store: how
many requests a Harper takes at once decides how many tasks a run has.
"""

import os

from benchmarks.mover_vs_others import moved
from benchmarks.moves import move_of, spark_session
from benchmarks.rounds import in_turns, is_quick, ratios, record
from benchmarks.sink import sink
from benchmarks.streams import TIME, Span, stream_server

TASKS = (1, 2, 4)
ROWS, QUICK_ROWS = 600_000, 60_000
ROUNDS = 3


def measure(rows: int, rounds: int, *, keep: bool) -> None:
    """All in turns, once Spark is warm."""
    with (
        stream_server() as (source, source_pid),
        sink(f'"{TIME}":') as (target, sink_pid),
        spark_session(max(TASKS)) as spark,
    ):
        servers = (source_pid, sink_pid)
        moves = {tasks: move_of(Span(rows, tasks), source, target) for tasks in TASKS}
        ways = {
            str(tasks): (lambda move=move: moved(spark, move, rows, servers))
            for tasks, move in moves.items()
        }
        in_turns(ways, 1)
        costs = in_turns(ways, rounds)
    lines = [
        f"{rows:,} rows of 16 columns, {os.cpu_count()} cores that the source and the sink share,",
        f"{rounds} rounds in turns.",
        "",
        "| tasks | rows/s over one task |",
        "|---|---|",
    ]
    figures = {}
    for tasks in TASKS[1:]:
        ratio = ratios(costs, str(tasks), "1", lambda cost: cost.rate)
        lines.append(f"| {tasks} | {ratio} |")
        figures[str(tasks)] = vars(ratio)
    record("more_tasks", "More tasks", lines, {"rows": rows, **figures}, keep=keep)


def main() -> None:
    """Read the arguments and measure."""
    quick = is_quick(__doc__)
    measure(QUICK_ROWS if quick else ROWS, 1 if quick else ROUNDS, keep=not quick)


if __name__ == "__main__":
    main()
