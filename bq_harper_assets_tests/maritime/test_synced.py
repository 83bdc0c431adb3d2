"""What `bqh maritime initialize` makes arrives in Harper, all three tables, row for row."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.project import load_project
from bq_harper_assets.maritime.initialize import SCENARIOS, Sample, initialize
from bq_harper_assets.maritime.reports import microseconds
from bq_harper_assets.maritime.warehouse import Warehouse
from bq_harper_assets_tests.stores.small_tables import utc
from bq_harper_assets_tests.sync.conftest import Sync, ledger, spark, sync

__all__ = ["ledger", "spark", "sync"]
END = utc(2026, 11, 16, 12)
HOUR = timedelta(hours=1)


@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.spark
@pytest.mark.promise("K1", "K3")
def test_the_three_sample_tables_are_in_harper_as_they_are_in_bigquery(
    sync: Sync, bigquery_connection: BigQueryConnection, project_root: Path
) -> None:
    warehouse = Warehouse(bigquery_connection, "synced_sample")
    initialize(warehouse, Sample(SCENARIOS["small"], 7, microseconds(END)), lambda *_: None)
    rows = {stats.table: stats.rows for stats in warehouse.stats()}
    assert rows == {"vessel_positions": 100, "port_events": 10, "vessel_metadata": 20}
    for shipped in load_project(project_root).tables:
        declared = shipped.model_dump(exclude_unset=True)
        declared |= {"dataset": "synced_sample", "target_table": f"Sample{shipped.target_table}"}
        contract = type(shipped).model_validate(declared)
        moment = contract.timestamp_column
        source = warehouse.dataset.query(f"SELECT * FROM `{{dataset}}.{contract.source.table}`")
        moments = [row[moment] for row in source]
        first = min(moments).replace(minute=0, second=0, microsecond=0)
        sync.run(contract, sync.cells(contract, first, max(moments) + HOUR))
        stored = sync.harper.search_by_value(contract.target.table, moment, "*", ("*",))
        names = list(source[0].keys())
        assert len(stored) == rows[str(contract.source.table)]
        wanted = sorted(str([_as_stored(row[name]) for name in names]) for row in source)
        assert sorted(str([row[name] for name in names]) for row in stored) == wanted


def _as_stored(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return int(value) if isinstance(value, float) and value.is_integer() else value
