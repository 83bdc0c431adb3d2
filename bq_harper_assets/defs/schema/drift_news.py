"""What Dagster has not been told of the tables' schemas: results, versions, and runs to follow."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dagster import AssetCheckEvaluation, AssetMaterialization, DagsterInstance, RunRequest
from pydantic import BaseModel

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.runs.active_runs import job_is_running
from bq_harper_assets.defs.schema.drift_check import evaluation
from bq_harper_assets.defs.schema.schema_asset import evolve_job
from bq_harper_assets.defs.schema.schema_versions import unshown, version_shown
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import NewestVersion
from bq_harper_assets.sync.schema_sync.version_history import version_steps
from bq_harper_assets.validation.schema_drift import DriftVerdict, check_drift


class Told(BaseModel):
    """What Dagster was last told of a table."""

    version: int = 0  # by the check
    verdict: str = ""
    shown: int = 0  # the version up to which the schema's asset has all


@dataclass(frozen=True)
class News:
    """Gathered table by table; `told` is by table what is known once it is told."""

    instance: DagsterInstance
    ledger: Ledger
    told: dict[str, Told]
    checks: list[AssetCheckEvaluation] = field(default_factory=list)
    versions: list[AssetMaterialization] = field(default_factory=list)
    requests: list[RunRequest] = field(default_factory=list)

    @property
    def said(self) -> list[str]:
        """Of the results, table by table."""
        return [f"{each.asset_key.path[-1]}: {each.description}" for each in self.checks]

    def is_behind(self, contract: TableContract, newest: NewestVersion | None) -> bool:
        """Whether the ledger has a version that Dagster was not told of."""
        told = self.told.get(contract.id, Told())
        return newest is not None and (told.version, told.shown) != (newest.version,) * 2

    def gather(
        self,
        contract: TableContract,
        problem: str | None,
        figures: Callable[[DriftVerdict], Mapping[str, Any]],
        *,
        was_looked_at: bool,
    ) -> None:
        """What is new of a table; `problem` is why it cannot be followed.

        What was told stands until a look finds it settled, so that somebody can see it.
        """
        before = self.told.get(contract.id, Told())
        verdict = check_drift(self.ledger, contract, before.version, problem)
        is_told = verdict.signature == before.verdict or (verdict.passed and not verdict.version)
        if not is_told and (was_looked_at or verdict.version != before.version):
            self.checks.append(evaluation(contract, verdict, figures(verdict)))
            if verdict.is_due:
                key = f"{contract.id}-{verdict.version}"
                self.requests.append(RunRequest(run_key=key, job_name=evolve_job(contract)))
            update = {"version": verdict.version, "verdict": verdict.signature}
            before = before.model_copy(update=update)
        if before.shown != verdict.version:
            # The newest is left to the run that follows it.
            is_left = verdict.is_due or job_is_running(self.instance, evolve_job(contract))
            before = self._show(contract, before, verdict.version - is_left)
        if before != Told():
            self.told[contract.id] = before

    def _show(self, contract: TableContract, before: Told, upto: int) -> Told:
        if before.shown == upto:
            return before
        steps = version_steps(self.ledger, contract)[:upto]
        new = unshown(self.instance, contract, steps)
        self.versions.extend(version_shown(contract, step) for step in new)
        return before.model_copy(update={"shown": upto})
