"""One run in a process of its own, which another TZ can be given to; its task comes by stdin."""

import pickle
import sys
import time
from dataclasses import dataclass

from pyspark.sql import SparkSession

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.run import Run, Stores


@dataclass(frozen=True)
class Errand:
    """All that the run needs; secrets too, so never an argument of the process."""

    bigquery: BigQueryConnection
    harper: HarperConnection
    ledger_url: str
    contract: TableContract
    cells: list[Cell]

    def do(self) -> int:
        """The rows written."""
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.log.level": "ERROR",
        }
        spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
        with open_ledger(self.ledger_url) as ledger:
            stores = Stores(self.bigquery, self.harper, ledger)
            rows = Run(stores, self.contract, spark, "elsewhere").sync(self.cells).rows
        spark.stop()
        return rows


if __name__ == "__main__":
    from bq_harper_assets_tests.sync import run_elsewhere  # pickled under this name

    errand = pickle.load(sys.stdin.buffer)
    assert isinstance(errand, run_elsewhere.Errand)
    print(time.tzname[0], errand.do())
