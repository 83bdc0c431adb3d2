"""When a night looks for lost rows, and what it tells of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from dagster import DagsterEventType, DagsterInstance, OpExecutionContext, job, op
from pydantic import SecretStr
from sqlalchemy import text

from bq_harper_assets.defs.checks.deep_proofs import look_for_lost_rows
from bq_harper_assets.defs.resources import (
    LEDGER_URLS,
    BigQueryToHarperResource,
    LedgerResource,
    SparkResource,
)
from bq_harper_assets.defs.runs.launch import QUIET
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.store.columns import duration_micros
from bq_harper_assets.ledger.store.database import Database
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource
from bq_harper_assets.stores.harper.mirror.tables import AUDITS
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.validation.proof.cell_proof import PROOF_CHECK
from bq_harper_assets.validation.proof.presence import PRESENCE_CHECK
from bq_harper_assets.validation.verdict import Verdict
from bq_harper_assets_tests.empty_dagster import empty_dagster
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper, client_of, harper_with
from bq_harper_assets_tests.validation.committed import at, committed, ships

SHIPS = ships(scrub="2d")


@dataclass
class Nights:
    """A table of three rows in one synced window, and a night's look for lost ones."""

    harper: MemoryHarper
    ledger: Ledger
    url: str
    instance: DagsterInstance
    resources: BigQueryToHarperResource

    def look(self) -> tuple[Verdict | None, list[tuple[str, bool]]]:
        """What it finds, and the checks that it files."""
        found: list[Verdict | None] = []

        @op
        def step(context: OpExecutionContext) -> None:
            found.append(look_for_lost_rows(context, SHIPS, self.resources))

        @job
        def run() -> None:
            step()

        ended = run.execute_in_process(instance=self.instance, run_config=QUIET)
        logs = self.instance.all_logs(ended.run_id, DagsterEventType.ASSET_CHECK_EVALUATION)
        filed = [each.get_dagster_event().asset_check_evaluation_data for each in logs]
        return found[0], [(each.check_name, each.passed) for each in filed]

    def later(self, duration: timedelta) -> None:
        """As if all that was noted had been noted earlier."""
        database = Database(SecretStr(self.url))
        with database.writing() as connection:
            change = text("UPDATE audit SET at = at - :us")
            connection.execute(change, {"us": duration_micros(duration)})
        database.close()


@pytest.fixture
def nights(tmp_path: Path, nowhere: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nights]:
    url = empty_ledger(tmp_path / "ledger.db")
    monkeypatch.setitem(LEDGER_URLS, url, SecretStr(url))
    rows = [{"id": n, "event_time": at(n)} for n in range(3)]
    harper = harper_with({"Orders": rows, AUDITS.name: []})
    # On disk: of one in memory the thread that watches a run would lock what the run writes.
    with (
        DagsterInstance.local_temp(empty_dagster(tmp_path / "dagster")) as instance,
        open_ledger(url) as ledger,
        client_of(harper) as client,
    ):
        login = client.connection
        resources = BigQueryToHarperResource(
            bigquery=BigQueryConnectionResource(project="p", endpoint=nowhere),
            harper=HarperResource.from_connection(login),
            ledger=LedgerResource(place=url),
            spark=SparkResource(spark_config={}, root=str(tmp_path), log=str(tmp_path / "log")),
        )
        yield Nights(harper, ledger, url, instance, resources)


def test_a_table_that_was_never_synced_is_not_looked_at(nights: Nights) -> None:
    assert nights.look() == (None, [])
    assert nights.harper.asked == []


def test_rows_are_looked_for_once_in_a_scrub_period_while_none_is_lost(nights: Nights) -> None:
    committed(nights.ledger, SHIPS, 0, 5)
    found, filed = nights.look()
    assert found
    assert (found.passed, filed) == (True, [])
    [note] = nights.ledger.audit(kind=PRESENCE_CHECK)
    assert note.outcome == "proved"
    assert [each["status"] for each in nights.harper.rows(AUDITS.name)] == ["healthy"]
    nights.later(timedelta(days=1, hours=11))
    assert nights.look() == (None, [])
    nights.later(timedelta(hours=1))
    found, _ = nights.look()
    assert found


def test_lost_rows_are_the_tables_proof_and_are_looked_for_each_night_until_they_are_back(
    nights: Nights,
) -> None:
    committed(nights.ledger, SHIPS, 0, 5)
    nights.harper.tables["Orders"].unfindable = {1}
    for _ in range(2):
        found, filed = nights.look()
        assert found
        assert (found.passed, [row.id for row in found.rows]) == (False, [1])
        assert filed == [(PROOF_CHECK, False)]
    nights.harper.tables["Orders"].unfindable = set()
    found, filed = nights.look()
    assert found
    assert found.passed
    [(name, _)] = filed  # the table is judged anew by the proofs of its cells
    assert name == PROOF_CHECK
    assert nights.look() == (None, [])
