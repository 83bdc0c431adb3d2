"""The maritime sample data are assets, so that the UI can make the local profile's sources."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetSpec,
    Config,
    Definitions,
    MaterializeResult,
    OpExecutionContext,
    job,
    multi_asset,
    op,
)
from pydantic import Field

from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.settings.profile import LOCAL
from bq_harper_assets.maritime.initialize import SCENARIOS, Sample, initialize
from bq_harper_assets.maritime.reports import microseconds
from bq_harper_assets.maritime.tables import DATASET, SHAPES
from bq_harper_assets.maritime.warehouse import Warehouse

SAMPLE_DATA_KEYS = frozenset(AssetKey(["bigquery", DATASET, shape.name]) for shape in SHAPES)


class SampleConfig(Config):
    """A run makes so much sample data, and drops the tables' old rows."""

    scenario: Literal["small", "realistic", "stress"] = "realistic"
    seed: int = Field(7, description="The same seed and end give the same rows.")


class RetentionConfig(Config):
    """Sample rows are kept for so long."""

    days: int = Field(30, ge=1, description="Positions and events older than this are deleted.")


def build_sample_data(root: Path) -> Definitions:
    """Builds three assets that are made together, and a job that deletes old rows."""

    @multi_asset(
        name="maritime_sample_data",
        specs=[
            AssetSpec(
                key, kinds={"bigquery"}, group_name="bigquery", description="Maritime sample data."
            )
            for key in sorted(SAMPLE_DATA_KEYS)
        ],
    )
    def maritime_sample_data(
        context: AssetExecutionContext, config: SampleConfig
    ) -> Iterator[MaterializeResult[None]]:
        warehouse = Warehouse(load_project(root, profile=LOCAL).bigquery, DATASET)
        end = datetime.now(UTC).replace(second=0, microsecond=0)
        sample = Sample(SCENARIOS[config.scenario], config.seed, microseconds(end))
        warehouse.clean(context.log.info)
        initialize(
            warehouse,
            sample,
            lambda table, done, total: context.log.info(f"{table}: {done} of {total} rows"),
        )
        for stats in warehouse.stats():
            yield MaterializeResult(
                asset_key=["bigquery", DATASET, stats.table],
                metadata={"dagster/row_count": stats.rows, "vessels": stats.vessels},
            )

    @op
    def delete_old_sample_rows(context: OpExecutionContext, config: RetentionConfig) -> None:
        warehouse = Warehouse(load_project(root, profile=LOCAL).bigquery, DATASET)
        gone = warehouse.trim(datetime.now(UTC) - timedelta(days=config.days))
        context.log.info(f"{gone} sample rows older than {config.days} days deleted")

    @job(description="Deletes sample rows that are older than the retention.")
    def maritime_retention() -> None:
        delete_old_sample_rows()

    return Definitions(assets=[maritime_sample_data], jobs=[maritime_retention])
