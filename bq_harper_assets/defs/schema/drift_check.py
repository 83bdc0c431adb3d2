"""Each table has a check `schema_drift`, which the sensor files and a run can make."""

from collections.abc import Mapping
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    MetadataValue,
    asset_check,
)

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.names import target_key
from bq_harper_assets.defs.resources import LedgerResource
from bq_harper_assets.sync.schema_sync.drift import last_look
from bq_harper_assets.validation.schema_drift import (
    SCHEMA_DRIFT_CHECK,
    DriftVerdict,
    as_markdown,
    check_drift,
)
from bq_harper_assets.validation.verdict import Severity

_SEVERITY = {Severity.WARN: AssetCheckSeverity.WARN, Severity.ERROR: AssetCheckSeverity.ERROR}


def build_drift_check(contract: TableContract) -> AssetChecksDefinition:
    """Builds the check as a run makes it: from the ledger, without asking BigQuery."""

    @asset_check(
        asset=target_key(contract),
        name=SCHEMA_DRIFT_CHECK,
        description="BigQuery's schema is followed: nothing waits, and nothing is refused.",
    )
    def drift(ledger: LedgerResource) -> AssetCheckResult:
        with ledger.open() as opened:
            last = last_look(opened)
            problem = last.problems.get(contract.id) if last else None
            verdict = check_drift(opened, contract, problem=problem)
        return AssetCheckResult(
            passed=verdict.passed,
            severity=_SEVERITY[verdict.severity],
            description=verdict.message,
            metadata=_metadata(verdict),
        )

    return drift


def evaluation(
    contract: TableContract, verdict: DriftVerdict, figures: Mapping[str, Any]
) -> AssetCheckEvaluation:
    """Gives the verdict as the sensor files it, without a run."""
    return AssetCheckEvaluation(
        asset_key=target_key(contract),
        check_name=SCHEMA_DRIFT_CHECK,
        passed=verdict.passed,
        severity=_SEVERITY[verdict.severity],
        description=verdict.message,
        metadata={**_metadata(verdict), **figures},
    )


def _metadata(verdict: DriftVerdict) -> dict[str, Any]:
    shown: dict[str, Any] = {"schema_version": verdict.version}
    if verdict.changes:
        shown["changes"] = MetadataValue.md(as_markdown(verdict.changes))
    return shown
