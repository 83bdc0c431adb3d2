"""What it costs to look again: reconcile and proof against the copy of the same rows.

python -m benchmarks.reconcile_and_proof [--quick]. Only ratios are printed and kept: Harper's
licence does not allow its figures to be published.
"""

import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.mover_vs_trivial_client import DATASET, DAY, connections, make_source
from benchmarks.moves import SLICES, spark_session
from benchmarks.rounds import Cost, is_quick, ratios, record
from benchmarks.servers import stack
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.maritime.tables import POSITIONS
from bq_harper_assets.routes.bigquery_to_harper import BigQueryToHarper, Stores
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets.sync.turn.turn import Turn
from bq_harper_assets.validation.proof.prover import Prover
from bq_harper_assets.validation.verdict import ProofStatus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, QUICK_ROWS = 1_000_000, 20_000
ROUNDS = 3
COPY, UNCHANGED, PROOF, CHANGED = "copy", "unchanged", "proof", "one in a hundred changed"
TARGETS = {UNCHANGED: 0.4, PROOF: 0.5}


@dataclass(frozen=True)
class Bench:
    """One source; each round has a target and a ledger of its own."""

    stores: Stores
    spark: "SparkSession"
    cells: list[Cell]
    queries: Queries

    def round(self, number: int) -> dict[str, Cost]:
        """Copy, look again, prove, change a little, reconcile."""
        contract = TableContract(
            id=f"t{number}",
            dataset=DATASET,
            table=POSITIONS.name,
            timestamp_column=POSITIONS.day_column,
            target_table=f"T{number:05}",
            slices=SLICES,
        )
        run = Turn(
            route=BigQueryToHarper(self.stores, contract),
            spark=self.spark,
            run_id=f"round {number}",
        )
        costs = {COPY: self._timed(run)}
        costs[UNCHANGED] = self._timed(run, written=0)
        began = time.perf_counter()
        proofs = Prover(BigQueryToHarper(self.stores, contract), self.spark).prove(self.cells)
        rows = sum(proof.rows for proof in proofs)
        costs[PROOF] = Cost(rows, time.perf_counter() - began)
        assert {proof.status for proof in proofs} == {ProofStatus.PROVED}
        changed = self._change(number)
        costs[CHANGED] = self._timed(run, written=changed)
        return costs

    def _timed(self, run: Turn, written: int | None = None) -> Cost:
        began = time.perf_counter()
        report = run.sync(self.cells)
        seconds = time.perf_counter() - began
        assert written is None or report.rows == written
        return Cost(sum(cell.result.read for cell in report.cells), seconds)

    def _change(self, number: int) -> int:
        table = f"`{self.queries.connection.project}`.`{DATASET}`.`{POSITIONS.name}`"
        some = f"MOD(UNIX_MICROS({POSITIONS.day_column}), 100) = {number}"
        answer = self.queries.run(f"SELECT COUNT(*) AS n FROM {table} WHERE {some}", doing="count")
        self.queries.run(
            f"UPDATE {table} SET speed_knots = speed_knots + 1 WHERE {some}", doing="change"
        )
        return int(answer.rows[0]["n"])


def measure(rows: int, rounds: int, *, keep: bool) -> None:
    """The first round warms up and is not counted."""
    end = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    with (
        tempfile.TemporaryDirectory() as folder,
        stack("reconcile") as addresses,
        spark_session() as spark,
        open_ledger(f"sqlite:///{Path(folder) / 'ledger.db'}") as ledger,
    ):
        bigquery, harper = connections(addresses)
        make_source(bigquery, rows, end)
        windows = windows_between(end - DAY, end, timedelta(hours=1))
        cells = [Cell(window, part) for window in windows for part in range(SLICES)]
        queries = Queries(BigQueryCalls(bigquery))
        bench = Bench(Stores(bigquery, harper, ledger), spark, cells, queries)
        bench.round(0)
        found = [bench.round(number) for number in range(1, rounds + 1)]
    costs = {name: [each[name] for each in found] for name in found[0]}
    moved = costs[COPY][0].rows
    lines = [
        f"{moved:,} positions in {len(cells)} cells, a real Harper, warm Spark, {rounds} rounds.",
        "Each figure is the time over that of the copy of the same rows in the same round.",
        "",
        "| pass | time over copy | target |",
        "|---|---|---|",
    ]
    figures: dict[str, object] = {"rows": moved, "cells": len(cells)}
    for name in (UNCHANGED, PROOF, CHANGED):
        ratio = ratios(costs, name, COPY, lambda cost: cost.seconds / cost.rows)
        lines.append(f"| {name} | {ratio} | {TARGETS.get(name, 'only those are written')} |")
        figures[name] = vars(ratio)
    record("reconcile_and_proof", "The cost of looking again", lines, figures, keep=keep)


def main() -> None:
    """Read the arguments and measure."""
    quick = is_quick(__doc__)
    measure(QUICK_ROWS if quick else ROWS, 1 if quick else ROUNDS, keep=not quick)


if __name__ == "__main__":
    main()
