"""An instance should have what our dagster.yaml has, but a deployment may keep an older one."""

from pathlib import Path

from dagster import DagsterInstance
from dagster._core.instance.config import PoolGranularity

BEGINS_WITHIN_S = 3600  # as dagster.yaml has it, with the reason
LAUNCHER = "run_launcher: {module: bq_harper_assets.defs.run_launcher, class: WatchedRunLauncher}"
POOLS = "concurrency: {pools: {default_limit: 1, granularity: run}}"
MONITORING = f"run_monitoring: {{enabled: true, start_timeout_seconds: {BEGINS_WITHIN_S}}}"


def lacking(instance: DagsterInstance) -> list[str]:
    """Lists what to write into the instance's dagster.yaml; nothing if all is there."""
    pools = instance.get_concurrency_config().pool_config
    is_monitored = (
        instance.run_monitoring_enabled
        and instance.run_monitoring_start_timeout_seconds >= BEGINS_WITHIN_S
    )
    wanted = {
        # Those for Docker and Kubernetes look after their runs themselves.
        LAUNCHER: instance.run_launcher.supports_check_run_worker_health,
        MONITORING: is_monitored,
        POOLS: pools.pool_granularity is PoolGranularity.RUN,
    }
    return [setting for setting, is_there in wanted.items() if not is_there]


def lacking_at(home: Path) -> list[str]:
    """Lists what is lacking in the instance that keeps its files there."""
    with DagsterInstance.from_config(str(home)) as instance:
        return lacking(instance)


def what_it_means(place: Path) -> str:
    """Says what can go wrong in the instance at `place`, which lacks some of our settings."""
    return (
        f"the dagster.yaml of {place} lacks settings of ours: a run that is killed may keep its"
        ' place in the pool and its mark "running", or a run that works may be called failed'
    )
