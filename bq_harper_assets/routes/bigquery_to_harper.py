"""Rows go from a BigQuery table, view or query into a Harper table."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import RouteFacts
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.bigquery.source import BigQuerySource, bigquery_source
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.stores.harper.target import HarperTarget, harper_target
from bq_harper_assets.sync.cells.cut import TimeCut
from bq_harper_assets.sync.ledger_facts import table_facts


@dataclass(frozen=True)
class Stores:
    """The stores are where a route reads, writes and records."""

    bigquery: BigQueryConnection
    harper: HarperConnection
    ledger: Ledger


@dataclass(frozen=True)
class BigQueryToHarper:
    """This is the route of one contract."""

    stores: Stores
    contract: TableContract

    @property
    def ledger(self) -> Ledger:
        """Returns the ledger that coordinates the route."""
        return self.stores.ledger

    @property
    def facts(self) -> RouteFacts:
        """Returns what must not change once the table is synced."""
        return table_facts(self.contract, self.stores.bigquery.project)

    @property
    def cut(self) -> TimeCut:
        """Returns the windows that the contract declares."""
        return TimeCut(self.contract.window)

    def source(
        self, doing: str, sleep: Callable[[float], None] | None = None
    ) -> AbstractContextManager[BigQuerySource]:
        """Opens BigQuery; its bill shows what was asked as `doing`, and for which table."""
        return bigquery_source(
            self.stores.bigquery,
            {"bqh": doing, "bqh_table": self.contract.id},
            harper_plan,
            give_up_after=self.contract.sync.give_up_after,
            sleep=sleep or time.sleep,
        )

    def target(self, retry: RetryPolicy) -> AbstractContextManager[HarperTarget]:
        """Opens Harper."""
        return harper_target(self.contract, self.stores.harper, retry)
