"""The sample data as Dagster makes and trims it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from dagster import DagsterInstance

from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.settings.addresses import StackAddresses, write_addresses
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.defs.build import build_definitions
from bq_harper_assets.defs.sample_data import SAMPLE_DATA_KEYS
from bq_harper_assets.maritime.tables import DATASET
from bq_harper_assets.maritime.warehouse import Warehouse
from bq_harper_assets_tests.defs.test_build import project

__all__ = ["project"]
DAY = timedelta(days=1)


def _moments(warehouse: Warehouse) -> list[datetime]:
    rows = warehouse.dataset.query("SELECT timestamp FROM `{dataset}.vessel_positions`")
    return [row["timestamp"] for row in rows]


@pytest.mark.bigquery
@pytest.mark.promise("K1", "K6")
def test_sample_data_is_made_and_trimmed_by_dagster_jobs(
    project: Path, bigquery_server: StackAddresses
) -> None:
    local_folder(project).mkdir()
    write_addresses(local_folder(project), bigquery_server)
    definitions = build_definitions(project)
    with DagsterInstance.ephemeral() as instance:
        config = {"ops": {"maritime_sample_data": {"config": {"scenario": "small"}}}}
        made = definitions.resolve_implicit_global_asset_job_def().execute_in_process(
            run_config=config, instance=instance, asset_selection=list(SAMPLE_DATA_KEYS)
        )
        rows = {
            event.asset_key.path[-1]: event.materialization.metadata["dagster/row_count"].value
            for event in made.get_asset_materialization_events()
            if event.asset_key
        }
        assert rows == {"port_events": 10, "vessel_metadata": 20, "vessel_positions": 100}
        warehouse = Warehouse(load_project(project).bigquery, DATASET)
        warehouse.dataset.change(
            "UPDATE `{dataset}.vessel_positions` SET timestamp = TIMESTAMP_SUB(timestamp, INTERVAL"
            " 31 DAY) WHERE latitude > 20"
        )
        old = sum(1 for each in _moments(warehouse) if each < datetime.now(UTC) - 30 * DAY)
        assert 0 < old < 100
        trimmed = definitions.resolve_job_def("maritime_retention").execute_in_process(
            instance=instance
        )
        assert trimmed.success
        left = _moments(warehouse)
        assert len(left) == 100 - old
        assert min(left) > datetime.now(UTC) - 30 * DAY
