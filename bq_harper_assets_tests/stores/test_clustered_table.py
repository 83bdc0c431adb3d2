"""A BigQuery table's partitioning and clustering become indexes in Harper, as Harper tells it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from google.cloud import bigquery

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.schema import read_schema
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.stores.harper.table.ensure_table import ensure_table
from bq_harper_assets_tests.stores.small_tables import SmallTables

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]
field = bigquery.SchemaField


@pytest.fixture
def harper(harper_connection: HarperConnection) -> Iterator[HarperClient]:
    with HarperClient(harper_connection) as client:
        yield client


@pytest.mark.promise("C1", "C2")
def test_harper_describes_an_index_on_the_timestamp_the_partitioning_and_each_clustering_column(
    bigquery_connection: BigQueryConnection, harper: HarperClient
) -> None:
    tables = SmallTables.at(bigquery_connection)
    source = tables.new_name()
    described = bigquery.Table(
        str(source),
        schema=[
            field("moved", "TIMESTAMP"),  # no rule of names, no partition: the contract's own
            field("day", "DATE"),
            field("region", "STRING"),
            field("essay", "STRING"),
            field("grade", "INT64"),
            field("note", "STRING"),
            field("crew_id", "INT64"),
        ],
    )
    described.time_partitioning = bigquery.TimePartitioning(field="day")
    described.clustering_fields = ["region", "essay", "grade"]
    tables.queries.client.create_table(described)
    table = f"Clustered{source.table}"
    declared = {
        "id": "clustered", "dataset": source.dataset, "table": source.table,
        "timestampColumn": "moved", "targetTable": table,
    }  # fmt: skip
    contract = TableContract.model_validate(declared)

    read = read_schema(
        tables.queries.client,
        source.project,
        source.dataset,
        source.table,
        calls=BigQueryCalls(bigquery_connection),
    )
    # STRING(5000), which the emulator forgets.
    long = tuple(
        replace(each, max_length=5_000) if each.name == "essay" else each for each in read.columns
    )
    plan = harper_plan(contract, replace(read, columns=long))

    assert {each.column: each.reason for each in plan.indexes if each.indexed} == {
        "moved": "timestampColumn",
        "day": "partition",
        "region": "cluster",
        "essay": "cluster",
        "grade": "cluster",
        "crew_id": "name:_id",
    }
    ensure_table(harper, plan)
    found = harper.describe_table(table)
    assert found is not None
    indexed = {each.name for each in found.attributes if each.indexed}
    assert indexed == {"moved", "day", "region", "essay", "grade", "crew_id"}
    # Texts longer than Harper's own keys may be are stored, and found by their index.
    essays = ["x" * 5_000 + str(number) for number in range(3)]
    harper.upsert(table, [{"id": str(n), "essay": text} for n, text in enumerate(essays)])
    same = harper.search_by_conditions(table, [Condition("essay", "equals", essays[1])], ("id",))
    assert same == [{"id": "1"}]
