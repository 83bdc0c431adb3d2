"""A driver in a process of its own, that can be stopped and killed: `python -m ...other_driver`.

Each line that it reads is a run; each line that it writes is how that run ended.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from queue import Queue
from typing import Any

from pyspark.sql import SparkSession

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.resources import SPARK_DEFAULTS
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.routes.bigquery_to_harper import BigQueryToHarper, Stores
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.lease.keeper import LeaseTimes
from bq_harper_assets.sync.turn.turn import Turn


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One run, as it travels to the other process."""

    bigquery: BigQueryConnection
    harper: HarperConnection
    ledger: Path
    contract: TableContract
    cells: Sequence[Cell]
    owner: str
    times: LeaseTimes

    def line(self) -> str:
        """The password stays out of process lists: it goes through a pipe."""
        return json.dumps(
            {
                "bigquery": self.bigquery.model_dump(mode="json"),
                "harper": self.harper.model_dump(mode="json")
                | {"password": self.harper.password.get_secret_value()},
                "ledger": str(self.ledger),
                "contract": self.contract.model_dump(mode="json", exclude_unset=True),
                "cells": [cell.key for cell in self.cells],
                "owner": self.owner,
                "ttl": self.times.ttl.total_seconds(),
                "effect_within": self.times.effect_within.total_seconds(),
            }
        )


class OtherDriver:
    """The process as a test holds it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._said: Queue[str] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._said.get(timeout=240) == "ready\n"

    def begin(self, asked: Asked) -> None:
        """Returns at once."""
        assert self.process.stdin is not None
        self.process.stdin.write(asked.line() + "\n")

    def ended(self) -> dict[str, Any]:
        """How the run that began ended."""
        told: dict[str, Any] = json.loads(self._said.get(timeout=60))
        return told

    def kill(self) -> None:
        """kill -9 of the driver alone; Spark's own processes then end by themselves."""
        self.process.kill()
        self.process.wait()
        self._reader.join(30)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._said.put(line)


def _run(spark: SparkSession, told: dict[str, Any]) -> dict[str, Any]:
    contract = TableContract.model_validate(told["contract"])
    harper = HarperConnection.model_validate(told["harper"])
    times = LeaseTimes(timedelta(seconds=told["ttl"]), timedelta(seconds=told["effect_within"]))
    with open_ledger(f"sqlite:///{told['ledger']}") as ledger:
        stores = Stores(BigQueryConnection.model_validate(told["bigquery"]), harper, ledger)
        # Patient: what ends a run here is its lease.
        run = Turn(
            route=BigQueryToHarper(stores, contract),
            spark=spark,
            run_id=told["owner"],
            times=times,
            retry=RetryPolicy(max_retries=200, initial_delay_s=0.1),
        )
        try:
            report = run.sync([Cell.parse(key, contract.window) for key in told["cells"]])
        except BqhError as error:
            return {"error": type(error).__name__, "said": str(error)}
        return {"rows": report.rows, "t": report.t.isoformat()}


def main() -> None:
    """Until the input ends."""
    here = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    builder = SparkSession.builder.master("local[1,4]").config(map=SPARK_DEFAULTS | here)
    spark = builder.getOrCreate()
    spark.range(1).count()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(_run(spark, json.loads(line))), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
