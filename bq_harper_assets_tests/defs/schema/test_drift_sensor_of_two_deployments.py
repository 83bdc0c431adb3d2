"""Two deployments that share a ledger, each a process: one looks, is killed, and is replaced."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from sqlalchemy import text

from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.settings.addresses import StackAddresses, write_addresses
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.store.database import Database
from bq_harper_assets_tests.defs.drifting import first_version
from bq_harper_assets_tests.defs.other_deployment import other_deployment
from bq_harper_assets_tests.fault_proxy import FaultProxy, LateAnswer, Seen
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import TemporaryProject, hours_ago, table

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]
TTL_US = 601_000_000


@pytest.fixture
def proxy(project: TemporaryProject, stack: StackAddresses) -> Iterator[FaultProxy]:
    """Between the project's deployments and BigQuery."""
    with FaultProxy(stack.bigquery_url) as between:
        addresses = stack.model_copy(update={"bigquery_url": between.url})
        write_addresses(local_folder(project.root), addresses)
        yield between


@pytest.mark.promise("D5", "D6", "A12")
def test_a_deployment_that_is_killed_while_it_looks_is_replaced_once_its_claim_has_expired(
    project: TemporaryProject, proxy: FaultProxy, ledger: Ledger, tables: SmallTables
) -> None:
    source = tables.make("number INT64, ts TIMESTAMP")
    declared = project.declare(table(source, hours_ago(4), live=False, key="number"))
    first_version(declared, ledger, tables)
    told = {"version": 1, "verdict": "1 passed", "shown": 1}
    due = {"next_look": "2000-01-01T00:00:00Z", "tables": {declared.tables[0].id: told}}

    def describes(seen: Seen) -> bool:
        return seen.path.partition("?")[0].endswith(f"/tables/{source.table}")

    def calls() -> list[Seen]:
        return [seen for seen in proxy.seen() if describes(seen)]

    with ExitStack() as stack:
        # One after the other: two that make Dagster's own files at once fail in Dagster.
        first, second = (stack.enter_context(other_deployment(project.root)) for _ in range(2))
        never = threading.Event()
        proxy.on(LateAnswer(never), matching=describes)
        first.begin(due)
        deadline = time.monotonic() + 60
        while not calls() and time.monotonic() < deadline:
            time.sleep(0.02)
        [claim] = ledger.claims()
        assert (claim.is_live, (claim.owner or "").endswith(f"-{first.process.pid}")) == (
            True,
            True,
        )
        looks = f"another deployment looks ({claim.owner}, until {claim.expires_at:%F %T} UTC)"
        assert looks in second.tick(due)["said"]

        first.process.kill()
        assert first.process.wait() == -9
        assert looks in second.tick(due)["said"]  # it may only seem dead
        assert len(calls()) == 1
        database = Database(load_project(project.root).ledger.url)
        with database.writing() as connection:
            connection.execute(text(f"UPDATE claims SET expires_at = expires_at - {TTL_US}"))
        database.close()
        taken = second.tick(due)
        assert taken["cursor"]["metadata_calls"] == 1
        assert "looked at 1 tables with 1 metadata calls" in taken["said"]
        assert len(calls()) == 2
        notes = ledger.audit(kind="claim", limit=9)[::-1]
        assert [entry.outcome for entry in notes] == ["taken", "taken over", "released"]
        assert notes[1].detail["taken_from"] == claim.owner
        assert notes[1].detail["owner"].endswith(f"-{second.process.pid}")
