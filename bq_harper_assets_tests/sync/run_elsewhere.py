"""One run in a process of its own, with another TZ or another Spark; its task comes by stdin."""

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import SecretStr
from pyspark.sql import SparkSession

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.routes.bigquery_to_harper import BigQueryToHarper, Stores
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.turn.turn import Turn


@dataclass(frozen=True, kw_only=True)
class Errand:
    """All that the run needs; secrets too, so never an argument of the process."""

    bigquery: BigQueryConnection
    harper: HarperConnection
    ledger_url: str
    contract: TableContract
    cells: list[Cell]
    settings: Mapping[str, str] = field(default_factory=dict)  # of Spark

    def send(self, **environ: str) -> list[str]:
        """Done elsewhere; the name of the time zone there, and the rows written."""
        # A connection with its password refuses to be pickled.
        hidden = self.harper.model_copy(update={"password": SecretStr("")})
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            input=pickle.dumps((replace(self, harper=hidden), self.harper.password)),
            env={**os.environ, **environ},
            capture_output=True,
            timeout=150,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().split()

    def do(self) -> int:
        """The rows written."""
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.log.level": "ERROR",
        }
        builder = SparkSession.builder.master("local[1]").config(map=settings | {**self.settings})
        spark = builder.getOrCreate()
        with open_ledger(self.ledger_url) as ledger:
            stores = Stores(self.bigquery, self.harper, ledger)
            rows = (
                Turn(route=BigQueryToHarper(stores, self.contract), spark=spark, run_id="elsewhere")
                .sync(self.cells)
                .rows
            )
        spark.stop()
        return rows


if __name__ == "__main__":
    from bq_harper_assets_tests.sync import run_elsewhere  # pickled under this name

    errand, password = pickle.load(sys.stdin.buffer)
    assert isinstance(errand, run_elsewhere.Errand)
    errand = replace(errand, harper=errand.harper.model_copy(update={"password": password}))
    print(time.tzname[0], errand.do())
