"""Check results of single partitions, filed so that Dagster shows them as current.

A check of a ranged run is one result without a partition to Dagster, and its partitions show as
skipped. A result that names its partition is shown only if it also names the materialisation that
it looked at, which Dagster has no public class for.
"""

from collections.abc import Collection, Sequence
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetCheckSeverity,
    AssetKey,
    AssetRecordsFilter,
    DagsterEventType,
    DagsterInstance,
    MetadataValue,
    OpExecutionContext,
    TableColumn,
    TableRecord,
    TableSchema,
)
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData as Target,
)

from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.validation.verdict import Difference, Severity, Verdict

SHOWN = 20  # rows in a result's table
_LONGEST = 300  # characters of a row's differences
_SEVERITY = {Severity.WARN: AssetCheckSeverity.WARN, Severity.ERROR: AssetCheckSeverity.ERROR}
_SCHEMA = TableSchema(
    [
        TableColumn("kind", "string"),
        TableColumn("id", "string"),
        TableColumn("columns", "string", "source -> target"),
    ]
)


def file_verdicts(
    context: OpExecutionContext,
    key: AssetKey,
    of_cells: Sequence[tuple[Cell, Verdict]],
    of_table: Sequence[Verdict],
) -> None:
    """Each becomes the current result of its check: of one of the asset's partitions, or of all."""
    targets = newest_materialisations(context.instance, key, {cell.key for cell, _ in of_cells})
    for cell, verdict in of_cells:
        _log(context, _evaluation(key, verdict, targets.get(cell.key), cell.key))
    if of_table:  # last: a check without a partition in view shows its newest result
        newest = context.instance.fetch_materializations(key, limit=1).records
        target = _target(newest[0]) if newest else None
        for verdict in of_table:
            _log(context, _evaluation(key, verdict, target))


def _log(context: OpExecutionContext, evaluation: AssetCheckEvaluation) -> None:
    # Dagster takes it, but its signature does not say so.
    context.log_event(evaluation)  # type: ignore[arg-type]


def newest_materialisations(
    instance: DagsterInstance, key: AssetKey, partitions: Collection[str]
) -> dict[str, Target]:
    """By partition; one that was never materialised is left out."""
    newest = instance.event_log_storage.get_latest_storage_id_by_partition(
        key, DagsterEventType.ASSET_MATERIALIZATION, set(partitions)
    )
    if not newest:
        return {}
    wanted = AssetRecordsFilter(asset_key=key, storage_ids=list(newest.values()))
    records = instance.fetch_materializations(wanted, limit=len(newest)).records
    return {str(record.partition_key): _target(record) for record in records}


def _target(record: Any) -> Target:
    return Target(storage_id=record.storage_id, run_id=record.run_id, timestamp=record.timestamp)


def _evaluation(
    key: AssetKey, verdict: Verdict, target: Target | None, partition: str | None = None
) -> AssetCheckEvaluation:
    return AssetCheckEvaluation(
        asset_key=key,
        check_name=verdict.check,
        passed=verdict.passed,
        severity=_SEVERITY[verdict.severity],
        description=verdict.message,
        metadata=verdict_metadata(verdict),
        target_materialization_data=target,
        partition=partition,
    )


def verdict_metadata(verdict: Verdict) -> dict[str, Any]:
    """The word, the figures, and the first of the rows that differ."""
    shown = {"status": verdict.status.value, "message": verdict.message, **verdict.metadata}
    if verdict.rows:
        records = [_record(row) for row in verdict.rows[:SHOWN]]
        shown["differing_rows"] = MetadataValue.table(records, _SCHEMA)
    return shown


def _record(row: Difference) -> TableRecord:
    columns = ", ".join(f"{name}: {a!r} -> {b!r}" for name, (a, b) in row.columns.items())
    return TableRecord({"kind": row.kind.value, "id": str(row.id), "columns": columns[:_LONGEST]})
