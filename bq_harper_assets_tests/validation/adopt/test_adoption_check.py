"""Where the windows of a table that others made will begin."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import SecretStr

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.validation.adopt.adoption_check import Beginning, find_beginning
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.schema.samples import contract
from bq_harper_assets_tests.stores.harper.table.test_ensure_table import WHOLE

RECORDED = datetime(2026, 1, 7, 10, 50, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_a_start_that_is_declared_goes_before_the_one_on_record(
    tmp_path: Path, nowhere: str
) -> None:
    declared = contract(window="60m", sync={"start_timestamp": RECORDED - 3 * HOUR})
    queries = Queries(BigQueryCalls(BigQueryConnection(project="p", endpoint=nowhere)))
    with FaultProxy(nowhere) as proxy, open_ledger(empty_ledger(tmp_path / "l.db")) as ledger:
        missing = {"error": "Table 'data.SyncCheckpoint' does not exist"}
        proxy.on(Answer(404, missing), operation="describe_table", times=9)
        ledger.record_start(declared.id, RECORDED)
        login = HarperConnection(url=proxy.url, user="nobody", password=SecretStr("none"))
        with HarperClient(login) as harper:
            begins = [
                find_beginning(ledger, queries, harper, known, WHOLE)
                for known in (declared, contract(window="60m"))
            ]
    start = RECORDED.replace(minute=0)
    assert begins == [Beginning(start - 3 * HOUR, None), Beginning(start, None)]
