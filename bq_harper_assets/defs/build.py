"""A project becomes Dagster definitions: every contract's source, asset, job and schedule."""

import warnings
from pathlib import Path

from dagster import BetaWarning, Definitions, PreviewWarning, in_process_executor

from bq_harper_assets.contract.project import load_project
from bq_harper_assets.defs.checks.deep_proofs import build_deep_proof_job, build_deep_proof_schedule
from bq_harper_assets.defs.checks.table_checks import build_checks
from bq_harper_assets.defs.checks.validation_jobs import build_validation_jobs
from bq_harper_assets.defs.resources import build_resources
from bq_harper_assets.defs.sample_data import SAMPLE_DATA_KEYS, build_sample_data
from bq_harper_assets.defs.schema.drift_check import build_drift_check
from bq_harper_assets.defs.schema.drift_sensor import build_drift_sensor
from bq_harper_assets.defs.schema.schema_asset import build_evolve_job, build_schema
from bq_harper_assets.defs.tables.all_tables_job import build_all_tables_job
from bq_harper_assets.defs.tables.asset import build_table
from bq_harper_assets.defs.tables.known_tables import known_tables
from bq_harper_assets.defs.tables.live_job import build_live_job, build_live_sensor
from bq_harper_assets.defs.tables.revisit_sensor import build_revisit_sensor
from bq_harper_assets.defs.tables.schedules import build_job, build_schedule
from bq_harper_assets.defs.tables.source_assets import build_source, source_key
from bq_harper_assets.ledger.ledger import Ledger


def build_definitions(
    root: Path, ledger: Ledger | None = None, *, profile: str | None = None
) -> Definitions:
    """Builds all that the project declares; the local profile can also make its own sample data.

    It reads the configuration and looks into the ledger for two seconds at most, or into one that
    the caller has open; it opens no store, and it needs none of them.
    """
    project = load_project(root, profile=profile)
    known = known_tables(project, ledger)
    starts = {name: table.start for name, table in known.items()}
    jobs = {table.id: build_job(table) for table in project.tables}
    evolutions = [build_evolve_job(table) for table in project.tables]
    deep_proofs = {table.id: build_deep_proof_job(table) for table in project.tables}
    made_here = SAMPLE_DATA_KEYS if project.profile_name == "local" else frozenset()
    # Dagster is pinned to one patch, so what is beta or a preview in it cannot change under us.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BetaWarning)
        warnings.simplefilter("ignore", PreviewWarning)
        tables = [
            build_table(table, starts[table.id], known[table.id].remark) for table in project.tables
        ]
        checks = [
            *(build_checks(table, starts[table.id]) for table in project.tables),
            *(build_drift_check(table) for table in project.tables),
        ]
        sensors = [
            *(build_revisit_sensor(t, starts[t.id], jobs[t.id]) for t in project.tables),
            *(build_live_sensor(t) for t in project.tables if t.live),
            *([build_drift_sensor(project.tables, evolutions)] if project.tables else []),
        ]
    return Definitions.merge(
        Definitions(
            assets=[
                *(build_source(t) for t in project.tables if source_key(t) not in made_here),
                *tables,
                *(build_schema(table) for table in project.tables),
            ],
            asset_checks=checks,
            jobs=[
                *jobs.values(),
                *(build_live_job(table) for table in project.tables if table.live),
                *build_validation_jobs(project.tables),
                *deep_proofs.values(),
                *evolutions,
                build_all_tables_job(project.tables, starts),
            ],
            schedules=[
                *(build_schedule(t, starts[t.id], jobs[t.id]) for t in project.tables),
                *(build_deep_proof_schedule(t, deep_proofs[t.id]) for t in project.tables),
            ],
            sensors=sensors,
            resources=build_resources(project),
            # Runs are the unit of parallel work; a process per step would only cost its start.
            executor=in_process_executor,
        ),
        build_sample_data(root) if made_here else Definitions(),
    )
