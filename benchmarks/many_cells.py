"""A run of many small cells through Dagster: what one cell costs, and where the time goes.

python -m benchmarks.many_cells [--quick]: 96 windows x 4 slices of 1,000 rows from the BigQuery
emulator into a sink in Harper's place, so that the figures are ours and not the store's.
"""

import json
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dagster import DagsterInstance

from benchmarks.moves import SLICES, spark_session
from benchmarks.parts_of_a_run import PARTS, WHOLE, timed
from benchmarks.rounds import is_quick, record
from benchmarks.servers import stack
from benchmarks.sink import sink
from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.defs.build import build_definitions
from bq_harper_assets.defs.checks import table_checks
from bq_harper_assets.defs.runs.launch import launch
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import windows_between

ROWS_PER_CELL = 1_000
WINDOWS, QUICK_WINDOWS = 96, 8
WINDOW = timedelta(minutes=15)
START = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=3)
ROUNDS = 3
TARGET_MS = 60
CHECKS = "checks: progress, smoke, spot, proof"


def make_sources(
    bigquery: BigQueryConnection,
    tables: list[str],
    windows: int,
    rows_per_cell: int = ROWS_PER_CELL,
) -> None:
    """The same rows in each table, evenly spread over all windows."""
    rows = windows * SLICES * rows_per_cell
    step = windows * WINDOW // timedelta(microseconds=1) // rows
    queries = Queries(BigQueryCalls(bigquery))
    with queries.client as client:
        client.create_dataset("many", exists_ok=True)
        for table in tables:
            queries.run(
                f"CREATE TABLE `many.{table}` AS SELECT"
                f" TIMESTAMP_ADD(TIMESTAMP '{START:%F}', INTERVAL n * {step} MICROSECOND) AS ts,"
                " n AS number, CONCAT('name ', CAST(n AS STRING)) AS name, n / 7 AS ratio"
                f" FROM UNNEST(GENERATE_ARRAY(0, {rows - 1})) AS n",
                doing="making the source",
            )


def make_project(
    root: Path, bigquery: StackAddresses, harper: HarperConnection, tables: list[str]
) -> None:
    """A contract for each table."""
    (root / "config" / "profiles").mkdir(parents=True)
    contract = {"dataset": "many", "timestampColumn": "ts", "window": "15m", "slices": SLICES}
    sync = {"startTimestamp": f"{START:%FT%TZ}"}
    declared = [
        contract | {"id": name, "table": name, "targetTable": name, "sync": sync} for name in tables
    ]
    profile = {
        "bigquery": {
            "project": bigquery.bigquery_project,
            "endpoint": bigquery.bigquery_url,
            "storageEndpoint": bigquery.bigquery_storage,
        },
        "harper": {
            "url": harper.url,
            "user": harper.user,
            "password": harper.password.get_secret_value(),
        },
        "ledger": {"url": "sqlite:///ledger.db"},
    }
    # JSON is YAML.
    files = {"tables.yaml": {"bigquery": {"tables": declared}}, "profiles/local.yaml": profile}
    for name, content in files.items():
        (root / "config" / name).write_text(json.dumps(content), encoding="utf-8")


def measure(windows: int, rounds: int, *, keep: bool) -> None:
    """Each round into a new table; one window goes before, to warm everything up."""
    tables = ["Warm", *(f"Round{number}" for number in range(rounds))]
    cells = [
        Cell(window, part)
        for window in windows_between(START, START + windows * WINDOW, WINDOW)
        for part in range(SLICES)
    ]
    passes = []
    with (
        tempfile.TemporaryDirectory() as folder,
        stack("many-cells", ["bigquery"]) as addresses,
        sink('"ts":') as (harper, _),
        spark_session() as spark,
        DagsterInstance.local_temp(folder, overrides={"telemetry": {"enabled": False}}) as instance,
    ):
        make_project(Path(folder), addresses, harper, tables)
        project = load_project(Path(folder))
        make_sources(project.bigquery, tables, windows)
        definitions = build_definitions(project.root)
        tracker = spark.sparkContext.statusTracker()
        jobs = 0
        for contract in project.tables:
            spent: dict[str, float] = {}
            wanted = cells[:SLICES] if contract.id == "Warm" else cells
            before = len(tracker.getJobIdsForGroup())
            with timed(spent, {**PARTS, CHECKS: (table_checks, "validate_cells")}):
                began = time.perf_counter()
                launched = launch(definitions, instance, contract, wanted)
                spent["all"] = time.perf_counter() - began
            assert not launched.error, launched.error
            assert len(launched.done) == len(wanted)
            jobs = len(tracker.getJobIdsForGroup()) - before
            passes.append(spent)
    shown = _per_cell(passes[1:], len(cells))
    total = shown["all"]
    lines = [
        f"{windows} windows x {SLICES} slices of {ROWS_PER_CELL:,} rows in one Dagster run, by one"
        f" move on Spark ({jobs} jobs by Spark's count), {rounds} rounds.",
        "",
        f"**{total:.1f} ms per cell** (median; target: under {TARGET_MS}), the ledger, Dagster's"
        " events and the checks included. Where they go:",
        "",
        "| part | ms per cell |",
        "|---|---|",
        *(f"| {name} | {ms:.2f} |" for name, ms in shown.items() if name != "all"),
        "",
        "Medians of each part, which need not add up.",
    ]
    figures = {"cells": len(cells), "rounds": rounds, "jobs": jobs, "ms_per_cell": shown}
    record("many_cells", "What a small cell costs", lines, figures, keep=keep)


def _per_cell(passes: list[dict[str, float]], cells: int) -> dict[str, float]:
    """Median milliseconds of each part."""
    for spent in passes:
        parts = sum(spent[name] for name in PARTS if name != WHOLE)
        spent["rest of the run"] = spent[WHOLE] - parts
        # The checks run in the same Dagster run, after the sync, and are no part of it.
        spent["Dagster: plan, metadata, events"] = spent["all"] - spent.pop(WHOLE) - spent[CHECKS]
    names = sorted(passes[0], key=lambda name: -passes[0][name])
    return {
        name: round(statistics.median(p[name] for p in passes) / cells * 1000, 3) for name in names
    }


def main() -> None:
    """Read the arguments and measure."""
    quick = is_quick(__doc__)
    measure(QUICK_WINDOWS if quick else WINDOWS, 1 if quick else ROUNDS, keep=not quick)


if __name__ == "__main__":
    main()
