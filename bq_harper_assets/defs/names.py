"""The names under which Dagster knows a contract, and what a run says of it."""

from dagster import AssetKey

from bq_harper_assets.contract.table import TableContract

NOT_SYNCED = "not_synced"  # metadata: columns of the source that are left out, and why


def target_key(contract: TableContract) -> AssetKey:
    """`harper/<target>`."""
    return AssetKey(["harper", contract.target_table])


def schema_key(contract: TableContract) -> AssetKey:
    """`schema/<target>`."""
    return AssetKey(["schema", contract.target_table])


def pool_of(contract: TableContract) -> str:
    """Two runs of one table would only wait for each other's lease."""
    return f"harper/{contract.target_table}"
