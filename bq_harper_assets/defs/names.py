"""Dagster knows a contract by these names."""

from dagster import AssetKey

from bq_harper_assets.contract.table import TableContract


def target_key(contract: TableContract) -> AssetKey:
    """Gives the asset key `harper/<target>`."""
    return AssetKey(["harper", contract.target_table])


def schema_key(contract: TableContract) -> AssetKey:
    """Gives the asset key `schema/<target>`."""
    return AssetKey(["schema", contract.target_table])


def pool_of(contract: TableContract) -> str:
    """Names a table's pool of one run: two runs would only wait for each other's lease."""
    return f"harper/{contract.target_table}"
