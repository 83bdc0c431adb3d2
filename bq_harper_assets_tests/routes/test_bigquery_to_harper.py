"""The route of one contract: what it reads, and under which name its cost is billed."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.routes.bigquery_to_harper import BigQueryToHarper, Stores
from bq_harper_assets.sync.cells.cut import TimeCut
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.fault_proxy import FaultProxy
from bq_harper_assets_tests.stores.bigquery.by_hand import PROJECT, Asked, BigQueryByHand
from bq_harper_assets_tests.stores.bigquery.test_materialised_query_answered_by_hand import contract
from bq_harper_assets_tests.stores.bigquery.test_queries import is_start, refusal

DAY = timedelta(days=1)
SYNC = {"giveUpAfter": "10m"}


def route(ledger: Ledger, bigquery: BigQueryConnection, nowhere: str) -> BigQueryToHarper:
    harper = HarperConnection(url=nowhere, user="nobody", password="none")
    asked = contract(window="1d", key=["k"], sync=SYNC)
    return BigQueryToHarper(Stores(bigquery, harper, ledger), asked)


def one(asked: Asked) -> Sequence[Mapping[str, Any]]:
    return [{"one": 1}]


def test_a_route_is_known_by_its_contract_and_bills_by_what_is_done(
    tmp_path: Path, nowhere: str
) -> None:
    with (
        BigQueryByHand(one) as service,
        open_ledger(empty_ledger(tmp_path / "ledger.db")) as ledger,
    ):
        known = route(ledger, service.connection, nowhere)
        assert known.ledger is ledger
        assert (known.facts.name, known.facts.target) == ("orders", "Orders")
        assert (known.facts.source, known.facts.window) == (f"{PROJECT}.shop.orders", DAY)
        assert known.cut == TimeCut(DAY)
        with known.source("proof") as source:
            source.queries.run("SELECT 1", doing="x")
    [asked] = service.asked
    assert asked.job["configuration"]["labels"] == {"bqh": "proof", "bqh_table": "orders"}


def test_a_bigquery_that_is_busy_is_waited_for_as_long_as_the_contract_says(
    tmp_path: Path, nowhere: str
) -> None:
    waits: list[float] = []
    with (
        BigQueryByHand(one) as service,
        FaultProxy(service.endpoint) as proxy,
        open_ledger(empty_ledger(tmp_path / "ledger.db")) as ledger,
    ):
        proxy.on(refusal(429, "rateLimitExceeded"), matching=is_start, times=20)
        connection = service.connection.model_copy(
            update={"endpoint": proxy.url, "max_retries": None}
        )
        known = route(ledger, connection, nowhere)
        with known.source("sync", waits.append) as source:
            source.queries.run("SELECT 1", doing="x")
            assert len(waits) == 20
            assert source.queries.calls.at_most_s(9_999) == 600


@pytest.mark.parametrize("named", [0, 1])
def test_a_number_of_retries_that_is_named_counts(named: int, tmp_path: Path, nowhere: str) -> None:
    waits: list[float] = []
    with (
        BigQueryByHand(one) as service,
        FaultProxy(service.endpoint) as proxy,
        open_ledger(empty_ledger(tmp_path / "ledger.db")) as ledger,
    ):
        proxy.on(refusal(429, "rateLimitExceeded"), matching=is_start, times=20)
        connection = service.connection.model_copy(
            update={"endpoint": proxy.url, "max_retries": named}
        )
        with (
            route(ledger, connection, nowhere).source("sync", waits.append) as source,
            pytest.raises(BqhError),
        ):
            source.queries.run("SELECT 1", doing="x")
    assert len(waits) == named
