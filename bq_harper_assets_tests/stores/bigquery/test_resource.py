"""The resource as Dagster uses it."""

from pathlib import Path

import pytest
from dagster_gcp import BigQueryResource

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource

pytestmark = pytest.mark.bigquery


@pytest.mark.promise("G1")
def test_the_resource_is_a_bigquery_resource_that_reaches_the_emulator(
    bigquery_connection: BigQueryConnection,
) -> None:
    connection = bigquery_connection.model_copy(
        update={
            "max_retries": 7,
            "location": "EU",
            "max_bytes_billed": 12_345,
            "results_dataset": "kept",
        }
    )
    resource = BigQueryConnectionResource.from_connection(connection)

    assert isinstance(resource, BigQueryResource)
    assert resource.connection() == connection
    with resource.get_client() as client:
        rows = client.query("SELECT 1 AS one", job_retry=None).result(timeout=20)
        assert [row["one"] for row in rows] == [1]


def test_the_resource_keeps_the_path_of_a_key_file() -> None:
    connection = BigQueryConnection(project="shop", credentials=Path("/keys/shop.json"))

    assert BigQueryConnectionResource.from_connection(connection).connection() == connection
