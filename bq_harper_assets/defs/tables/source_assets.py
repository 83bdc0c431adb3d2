"""The BigQuery tables are external assets, with which every lineage begins."""

from dagster import AssetKey, AssetSpec

from bq_harper_assets.contract.table import TableContract


def source_key(contract: TableContract) -> AssetKey:
    """Gives the key `bigquery/<dataset>/<table>`, or `bigquery/query/<id>` for a query."""
    if contract.source.dataset is None or contract.source.table is None:
        return AssetKey(["bigquery", "query", contract.id])
    return AssetKey(["bigquery", contract.source.dataset, contract.source.table])


def build_source(contract: TableContract) -> AssetSpec:
    """Builds the asset that the contract reads; its rows are made by others."""
    return AssetSpec(
        source_key(contract),
        description=f"Source of {contract.target.table}, read by {contract.timestamp_column}.",
        kinds={"bigquery"},
        group_name="bigquery",
    )
