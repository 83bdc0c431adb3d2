"""The BigQuery tables as Dagster sees them: external assets, the start of every lineage."""

from dagster import AssetKey, AssetSpec

from bq_harper_assets.contract.table import TableContract


def source_key(contract: TableContract) -> AssetKey:
    """`bigquery/<dataset>/<table>`, or `bigquery/query/<id>` where a query is read instead."""
    if contract.dataset is None or contract.table is None:
        return AssetKey(["bigquery", "query", contract.id])
    return AssetKey(["bigquery", contract.dataset, contract.table])


def build_source(contract: TableContract) -> AssetSpec:
    """What the contract reads. Its rows are made by others; we only look."""
    return AssetSpec(
        source_key(contract),
        description=f"Source of {contract.target_table}, read by {contract.timestamp_column}.",
        kinds={"bigquery"},
        group_name="bigquery",
    )
