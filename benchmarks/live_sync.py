"""A live table on the local stack: does it reach phase steady, and keep it over a window's close?

python -m benchmarks.live_sync [--quick]: a source that grows by 1,000 rows a second, 15 minutes
long, followed by live runs on one warm Spark into a real Harper. Rows come in loads of some
seconds, as a streaming job writes them; the emulator copies the whole table with each load, which
BigQuery does not.
"""

import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.mover_vs_trivial_client import connections
from benchmarks.moves import SLICES, spark_session
from benchmarks.rounds import is_quick, record
from benchmarks.servers import stack
from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.table import Sync, TableContract
from bq_harper_assets.instants import floor_to_window, instant_at
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.routes.bigquery_to_harper import BigQueryToHarper, Stores
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets.sync.phases import Phase
from bq_harper_assets.sync.revisit.horizon import standing
from bq_harper_assets.sync.revisit.open_window import Live
from bq_harper_assets.sync.revisit.pace import LIVE_RUN
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets.sync.turn.turn import Turn
from bq_harper_assets.validation.proof.prover import Prover

DATASET = "live"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is followed, and for how long."""

    rows_per_second: int
    lasts: timedelta
    backlog: timedelta  # that is there at the start
    window: timedelta
    load: timedelta  # how often rows come


SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
FULL = Plan(
    rows_per_second=1_000,
    lasts=15 * MINUTE,
    backlog=12 * MINUTE,
    window=15 * MINUTE,
    load=10 * SECOND,
)
QUICK = Plan(rows_per_second=200, lasts=MINUTE, backlog=MINUTE, window=5 * MINUTE, load=5 * SECOND)


@dataclass(kw_only=True)
class Watch:
    """What each poll left behind."""

    phases: list[Phase] = field(default_factory=list)
    lags: list[timedelta] = field(default_factory=list)
    windows: set[datetime] = field(default_factory=set)
    left_open: Counter[datetime] = field(default_factory=Counter)  # polls, by window
    waits: int = 0
    upto: datetime | None = None

    def look(self, report: TurnReport) -> None:
        """After each poll of a live run that has not had to wait."""
        self.phases.append(report.phase)
        # At its worst: when the poll has ended and readers still saw what the one before left.
        self.lags.append(datetime.now(UTC) - (self.upto or report.t))
        self.upto = instant_at(max(cell.upto for cell in report.cells))
        self.windows |= {c.cell.window.start for c in report.cells if not c.is_open}
        self.left_open.update({c.cell.window.start for c in report.cells if c.is_open})


class Feed:
    """A source table with the backlog in it, to which rows are added as their times come."""

    def __init__(self, bigquery: BigQueryConnection, begin: datetime, plan: Plan) -> None:
        self._queries = Queries(BigQueryCalls(bigquery))
        self._begin, self._plan = begin, plan
        self._stopped = threading.Event()
        self.rows = 0
        self._queries.client.create_dataset(DATASET, exists_ok=True)
        self._write("CREATE TABLE `{}` AS", begin + plan.backlog)

    @contextmanager
    def growing(self) -> Iterator[None]:
        """Rows come until the end of the block, or until the plan's time is over."""
        with self._queries.client, ThreadPoolExecutor(1) as pool:
            feeding = pool.submit(self._grow)
            try:
                yield
            finally:
                self._stopped.set()
            feeding.result()

    def _grow(self) -> None:
        end = self._begin + self._plan.backlog + self._plan.lasts
        now = datetime.now(UTC)
        while now < end and not self._stopped.wait(self._plan.load.total_seconds()):
            now = min(datetime.now(UTC), end)
            self._write("INSERT INTO `{}`", now)

    def _write(self, statement: str, until: datetime) -> None:
        step = 1_000_000 // self._plan.rows_per_second
        rows = (until - self._begin) // timedelta(microseconds=step)
        self._queries.run(
            f"{statement.format(f'{DATASET}.positions')} SELECT n AS number, n / 7 AS ratio,"
            f" TIMESTAMP_ADD(TIMESTAMP '{self._begin:%F %T}+00', INTERVAL n * {step} MICROSECOND)"
            " AS ts, CONCAT('vessel ', CAST(MOD(n, 500) AS STRING)) AS vessel"
            f" FROM UNNEST(GENERATE_ARRAY({self.rows}, {rows - 1})) AS n",
            doing="feeding the source",
        )
        self.rows = rows


def follow(run: Turn, start: datetime, end: datetime) -> Watch:
    """Live runs one after the other; closed windows that are missing come between them."""
    watch, contract, ledger = Watch(), run.contract, run.route.ledger
    while (now := ledger.now()) < end:
        if due := standing(ledger, contract, start, now).due:
            run.sync([each.cell for each in due])
        live = Live(sync=run.sync, contract=contract, ledger=ledger, after_look=watch.look)
        until = min(end, ledger.now() + LIVE_RUN)
        has_closed = live.follow(until)
        watch.waits += live.polls - len(live.reports)
        if not has_closed:  # its next poll would be later: a sensor starts the next run then
            time.sleep(max((until - ledger.now()).total_seconds(), 0))
    return watch


def measure(plan: Plan, *, keep: bool) -> None:
    """Prints and keeps shares, no rates: a real Harper takes part."""
    with (
        tempfile.TemporaryDirectory() as folder,
        stack("live-sync") as addresses,
        spark_session() as spark,
        open_ledger(f"sqlite:///{Path(folder) / 'ledger.db'}") as ledger,
    ):
        bigquery, harper = connections(addresses)
        begin = datetime.now(UTC).replace(microsecond=0) - plan.backlog
        feed = Feed(bigquery, begin, plan)
        start = floor_to_window(begin, plan.window)
        contract = TableContract(
            id="positions",
            dataset=DATASET,
            table="positions",
            timestamp_column="ts",
            target_table="Positions",
            window=plan.window,
            slices=SLICES,
            sync=Sync(start_timestamp=start),
        )
        run = Turn(
            route=BigQueryToHarper(Stores(bigquery, harper, ledger), contract),
            spark=spark,
            run_id="benchmark",
        )
        with feed.growing():
            watch = follow(run, start, begin + plan.backlog + plan.lasts)
        time.sleep((contract.safety_lag + timedelta(seconds=5)).total_seconds())
        last = _cells(contract, start, begin + plan.backlog + plan.lasts)
        report = run.sync(last)
        # Harper's own count of a large table is an estimate.
        proofs = Prover(BigQueryToHarper(run.route.stores, contract), spark, run.retry).prove(last)
    rows, steady = feed.rows, _since_steady(watch.phases)
    threshold = timedelta(seconds=contract.sync.steady_threshold)
    share = sum(phase is Phase.STEADY for phase in steady) / max(len(steady), 1)
    figures = {
        "polls": len(watch.phases),
        "polls_that_waited": watch.waits,
        "polls_before_steady": len(watch.phases) - len(steady),
        "share_steady_since": round(share, 3),
        "longest_lag_of_steady_threshold": round(max(watch.lags) / threshold, 3),
        "windows_closed": len(watch.windows),
        "rows": rows,
        "rows_proved": sum(proof.rows for proof in proofs),
        "rows_missing": sum(proof.missing for proof in proofs),
        "rows_changed": sum(proof.changed for proof in proofs),
        "rows_phantom": sum(proof.phantom for proof in proofs),
    }
    lines = [
        f"{plan.rows_per_second:,} rows a second for {plan.lasts}, {plan.backlog} of them waiting"
        f" at the start; windows of {plan.window}, {SLICES} slices.",
        "",
        "| what | |",
        "|---|---|",
        *(f"| {name.replace('_', ' ')} | {value} |" for name, value in figures.items()),
        "",
        f"The last run, after the source had ended, wrote {report.rows / rows:.3f} of its rows.",
    ]
    record("live_sync", "A live table keeps up", lines, figures, keep=keep)


def _cells(contract: TableContract, start: datetime, end: datetime) -> list[Cell]:
    return [
        Cell(window, number)
        for window in windows_between(start, end, contract.window)
        for number in range(contract.slices)
    ]


def _since_steady(phases: Sequence[Phase]) -> Sequence[Phase]:
    first = phases.index(Phase.STEADY) if Phase.STEADY in phases else len(phases)
    return phases[first:]


def main() -> None:
    """Read the arguments and measure."""
    quick = is_quick(__doc__)
    measure(QUICK if quick else FULL, keep=not quick)


if __name__ == "__main__":
    main()
