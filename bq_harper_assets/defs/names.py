"""Dagster knows a contract by these names, and a run says this of it."""

from dagster import AssetKey

from bq_harper_assets.contract.table import TableContract

ALL_TABLES_JOB = "sync_all_tables"
NOT_SYNCED = "not_synced"  # metadata: columns of the source that are left out, and why


def target_key(contract: TableContract) -> AssetKey:
    """Gives the asset key `harper/<target>`."""
    return AssetKey(["harper", contract.target.table])


def schema_key(contract: TableContract) -> AssetKey:
    """Gives the asset key `schema/<target>`."""
    return AssetKey(["schema", contract.target.table])


def pool_of(contract: TableContract) -> str:
    """Names a table's pool of one run: two runs would only wait for each other's lease."""
    return f"harper/{contract.target.table}"


def sync_job(contract: TableContract) -> str:
    """Names the job that syncs the table's partitions."""
    return f"sync_{contract.id}"


def live_job(contract: TableContract) -> str:
    """Names the job that follows the open window, and the sensor that asks for it."""
    return f"live_{contract.id}"


def evolve_job(contract: TableContract) -> str:
    """Names the job that brings Harper to the newest recorded schema."""
    return f"evolve_{contract.id}"
