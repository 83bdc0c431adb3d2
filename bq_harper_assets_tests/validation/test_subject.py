"""What a check learns of its table from the contract and the ledger alone."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.schema.samples import contract


@pytest.mark.parametrize("declared", [True, False])
def test_the_first_window_begins_where_the_grid_of_windows_has_the_start(
    declared: bool, tmp_path: Path, nowhere: str
) -> None:
    start = datetime(2026, 1, 7, 10, 50, tzinfo=UTC)
    known = contract(window="60m", **({"sync": {"start_timestamp": start}} if declared else {}))
    queries = Queries(BigQueryCalls(BigQueryConnection(project="p", endpoint=nowhere)))
    with (
        open_ledger(empty_ledger(tmp_path / "ledger.db")) as ledger,
        HarperClient(
            HarperConnection(url=nowhere, user="nobody", password=SecretStr("none"))
        ) as harper,
    ):
        subject = Subject(known, queries, harper, ledger)
        if not declared:
            assert subject.start() is None
            ledger.record_start(known.id, start)
        assert subject.start() == datetime(2026, 1, 7, 10, tzinfo=UTC)
