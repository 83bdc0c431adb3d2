"""Each version of a schema as one materialisation of the schema's asset, told once.

A run that evolves the table tells the version that it has prepared Harper for; the sensor tells the
others: those that a sync or a person has recorded and followed, and those that nobody may follow.
"""

from collections.abc import Iterable
from typing import Any

from dagster import (
    AssetMaterialization,
    DagsterInstance,
    MetadataValue,
    TableColumn,
    TableColumnConstraints,
    TableSchema,
)

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.names import schema_key
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.sync.schema_sync.version_history import Step
from bq_harper_assets.validation.schema_drift import as_markdown

VERSION = "schema_version"


def unshown(
    instance: DagsterInstance, contract: TableContract, steps: Iterable[Step]
) -> list[Step]:
    """Those that came since the version that Dagster shows now, whoever has told it of that."""
    event = instance.get_latest_materialization_event(schema_key(contract))
    made = event.asset_materialization if event else None
    shown = made.metadata[VERSION].value if made and VERSION in made.metadata else 0
    return [step for step in steps if step.recorded.version > int(str(shown))]


def version_shown(contract: TableContract, step: Step) -> AssetMaterialization:
    """For whoever has no run of the asset to tell it."""
    return AssetMaterialization(schema_key(contract), metadata=version_metadata(step))


def version_metadata(step: Step) -> dict[str, Any]:
    """Its columns, what it has changed, and who has recorded it, when and why."""
    recorded = step.recorded
    first = "the first version" if recorded.version == 1 else "nothing that rows depend on"
    return {
        "dagster/column_schema": column_table(step.version),
        VERSION: recorded.version,
        "recorded_at": MetadataValue.timestamp(recorded.recorded_at),
        "recorded_by": recorded.by,
        "cause": recorded.cause,
        "changes": MetadataValue.md(as_markdown(step.changes) if step.changes else first),
        "columns": len(step.version.live),
    }


def column_table(version: TableVersion) -> TableSchema:
    """Every column of the version, as BigQuery types it and Harper stores it."""
    return TableSchema(
        [
            TableColumn(
                column.name,
                column.type_text,
                column.description or None,
                TableColumnConstraints(
                    nullable=not column.required,
                    other=[
                        f"Harper: {column.stored.type.value}",
                        *(["indexed"] if column.indexed else []),
                        *([f"in BigQuery: {column.source}"] * (column.source != column.name)),
                        *([] if column.is_live else [column.state.value]),
                    ],
                ),
            )
            for column in version.columns
        ]
    )
