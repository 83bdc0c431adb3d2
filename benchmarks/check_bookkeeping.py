"""What the checks of many partitions cost besides the comparing: results, audit, Dagster's events.

python -m benchmarks.check_bookkeeping [--quick]: 24 windows x 4 slices are synced and then checked
by the job that moves nothing, on real servers. What the stores take part in is left out.
"""

import statistics
import tempfile
import time
from pathlib import Path

from dagster import DagsterInstance

from benchmarks.many_cells import START, WINDOW, make_project, make_sources
from benchmarks.mover_vs_trivial_client import connections
from benchmarks.moves import SLICES, spark_session
from benchmarks.parts_of_a_run import timed
from benchmarks.rounds import is_quick, record
from benchmarks.servers import stack
from bq_harper_assets.contract.project import load_project
from bq_harper_assets.defs.build import build_definitions
from bq_harper_assets.defs.checks import validation_run
from bq_harper_assets.defs.runs.launch import QUIET, launch
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import windows_between

WINDOWS, QUICK_WINDOWS = 24, 4
ROWS_PER_CELL = 100
ROUNDS = 3
TARGET_S = 15
TABLE = "Checked"
COMPARING = {
    "proof": (validation_run.Prover, "prove"),
    "other checks": (validation_run, "check_named"),
}


def measure(windows: int, rounds: int, *, keep: bool) -> None:
    """One sync, then the checks several times; the first pass only warms everything up."""
    cells = [
        Cell(window, part)
        for window in windows_between(START, START + windows * WINDOW, WINDOW)
        for part in range(SLICES)
    ]
    seconds = []
    with (
        tempfile.TemporaryDirectory() as folder,
        stack("check-bookkeeping") as addresses,
        spark_session(),
        DagsterInstance.local_temp(folder, overrides={"telemetry": {"enabled": False}}) as instance,
    ):
        bigquery, harper = connections(addresses)
        make_project(Path(folder), addresses, harper, [TABLE])
        make_sources(bigquery, [TABLE], windows, ROWS_PER_CELL)
        project = load_project(Path(folder))
        definitions = build_definitions(project.root)
        launched = launch(definitions, instance, project.tables[0], cells)
        assert not launched.error, launched.error
        job = definitions.resolve_job_def(f"validate_{TABLE}")
        for _ in range(rounds + 1):
            spent: dict[str, float] = {}
            with timed(spent, COMPARING):
                began = time.perf_counter()
                config = {"first": cells[0].key, "last": cells[-1].key}
                ops = {f"check_cells_of_{TABLE}": {"config": config}}
                ended = job.execute_in_process(run_config={**QUIET, "ops": ops}, instance=instance)
                whole = time.perf_counter() - began
            filed = [each for each in ended.get_asset_check_evaluations() if each.partition]
            assert len(filed) == len(cells)
            assert all(each.passed for each in filed)
            seconds.append(whole - sum(spent.values()))
    median = statistics.median(seconds[1:])
    lines = [
        f"{windows} windows x {SLICES} slices in one run of the job that checks and moves nothing,"
        f" {rounds} rounds.",
        "",
        f"**{median:.1f} s** (median; target for 24 x 4: under {TARGET_S}) besides the comparing:"
        f" a result for each partition, {len(validation_run.CHECKS)} of the table, the audit,"
        " Dagster's own events.",
    ]
    figures = {"cells": len(cells), "rounds": rounds, "seconds": round(median, 2)}
    record("check_bookkeeping", "What keeping check results costs", lines, figures, keep=keep)


def main() -> None:
    """Read the arguments and measure."""
    quick = is_quick(__doc__)
    measure(QUICK_WINDOWS if quick else WINDOWS, 1 if quick else ROUNDS, keep=not quick)


if __name__ == "__main__":
    main()
