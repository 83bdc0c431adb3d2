"""Check results, of the table and of partitions, are filed so that Dagster shows them as current.

The table's proof and those of its partitions are two checks to Dagster: it offers no Execute for a
check with partitions, and of one check's results it shows the one that was planned or filed first
last, so that the table's would hide behind a partition's. A check of a ranged run is one result
without a partition to Dagster, and its partitions show as skipped. A result that names its
partition is shown only if it also names the materialisation that it looked at, which Dagster has
no public class for.
"""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
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

from bq_harper_assets.activity import doing
from bq_harper_assets.validation.proof.cell_proof import CellProof
from bq_harper_assets.validation.verdict import Difference, Severity, Verdict

PER_PARTITION = "proof_per_partition"
_SHOWN = 20  # rows in a result's table
SAY_EVERY_S = 5.0
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
    proofs: Sequence[CellProof],
    of_table: Sequence[Verdict],
) -> None:
    """Files the proof of each partition and the table's own results; all are then current."""
    told = Telling(context.log.info, time.monotonic)
    with doing("writing check results", total=len(proofs) + len(of_table)) as step:

        def log(evaluation: AssetCheckEvaluation) -> None:
            # Dagster takes it, but its signature does not say so.
            context.log_event(evaluation)  # type: ignore[arg-type]
            step.advance()
            told.tell(str(step))

        targets = newest_materialisations(context.instance, key, {p.cell.key for p in proofs})
        for each in proofs:
            partition = each.cell.key
            log(_evaluation(key, PER_PARTITION, each.verdict, targets.get(partition), partition))
        if of_table:
            newest = context.instance.fetch_materializations(key, limit=1).records
            target = _target(newest[0]) if newest else None
            for verdict in of_table:
                log(_evaluation(key, verdict.check, verdict, target))


@dataclass
class Telling:
    """Says how far something is, but not more often than every five seconds."""

    say: Callable[[str], None]
    clock: Callable[[], float]
    _last: float | None = None

    def tell(self, line: str) -> None:
        """Says the line if it is time; the first is left out, as short work needs no line."""
        now = self.clock()
        self._last = now if self._last is None else self._last
        if now - self._last >= SAY_EVERY_S:
            self.say(line)
            self._last = now


def file_sum(context: OpExecutionContext, key: AssetKey, verdict: Verdict) -> None:
    """Files the one result that Dagster has planned for a run without partitions."""
    context.log_event(_evaluation(key, PER_PARTITION, verdict, None))  # type: ignore[arg-type]


def newest_materialisations(
    instance: DagsterInstance, key: AssetKey, partitions: Collection[str]
) -> dict[str, Target]:
    """Finds the newest materialisation of each partition; one that has none is left out."""
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
    key: AssetKey,
    name: str,
    verdict: Verdict,
    target: Target | None,
    partition: str | None = None,
) -> AssetCheckEvaluation:
    return AssetCheckEvaluation(
        asset_key=key,
        check_name=name,
        passed=verdict.passed,
        severity=_SEVERITY[verdict.severity],
        description=verdict.message,
        metadata=verdict_metadata(verdict),
        target_materialization_data=target,
        partition=partition,
    )


def verdict_metadata(verdict: Verdict) -> dict[str, Any]:
    """Gives the verdict's word, its figures, and the first of the rows that differ."""
    shown = {"status": verdict.status.value, "message": verdict.message, **verdict.metadata}
    if verdict.rows:
        records = [_record(row) for row in verdict.rows[:_SHOWN]]
        shown["differing_rows"] = MetadataValue.table(records, _SCHEMA)
    return shown


def _record(row: Difference) -> TableRecord:
    columns = ", ".join(f"{name}: {a!r} -> {b!r}" for name, (a, b) in row.columns.items())
    return TableRecord({"kind": row.kind.value, "id": str(row.id), "columns": columns[:_LONGEST]})
