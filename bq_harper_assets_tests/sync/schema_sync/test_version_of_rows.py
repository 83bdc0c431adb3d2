"""Which version the rows in Harper are of, also those that its estimate does not count."""

from pathlib import Path

import pytest

from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.stores.harper.target import HarperTarget
from bq_harper_assets.sync.ledger_facts import table_facts, version_of
from bq_harper_assets.sync.schema_sync.version_of_rows import version_of_rows
from bq_harper_assets_tests.stores.harper.lease.test_ledger_agreement import uncounted
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import made
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.pair import STEP

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


def test_ids_of_rows_that_harpers_estimate_does_not_count_stay_fixed(
    sync: Sync, tables: SmallTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(sync, tables, step=STEP)
    known = sync.stores.ledger.find_route(table.contract.id)
    assert known is not None
    version = sync.stores.ledger.newest_schema(known)
    assert version is not None
    uncounted(monkeypatch)
    with open_ledger(f"sqlite:///{tmp_path / 'new.db'}") as ledger:
        same = ledger.register_route(table_facts(table.contract, sync.stores.bigquery.project))
        seen = ledger.record_schema(same, version.body, 0)
        target = HarperTarget(table.contract, sync.harper)
        assert version_of_rows(ledger, target, same, seen, "me") == version_of(version)
        sync.harper.delete(
            table.contract.target.table, [r["id"] for r in sync.rows(table.contract)]
        )
        free = version_of_rows(ledger, target, same, seen, "me")
        assert free is not None
        assert free.id_paths == ()
