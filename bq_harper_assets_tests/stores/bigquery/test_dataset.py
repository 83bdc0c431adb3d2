"""Tables of our own making on the real emulator; what fails, fails fast with what to type next."""

import io
import json
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.client import connect, connect_storage
from bq_harper_assets.stores.bigquery.dataset import BigQueryColumn, Dataset, TableShape
from bq_harper_assets.stores.bigquery.errors import BigQueryRefused, BigQueryUnavailable
from bq_harper_assets_tests.fault_proxy import FaultProxy

SHIPS = TableShape(
    "ships",
    (BigQueryColumn("at", "TIMESTAMP", required=True), BigQueryColumn("name", "STRING")),
    day_column="at",
    clustering=("name",),
)
NOWHERE = BigQueryConnection(project="demo", endpoint="http://127.0.0.1:9")  # the discard port


@pytest.fixture
def ships(bigquery_connection: BigQueryConnection, request: pytest.FixtureRequest) -> Dataset:
    dataset = Dataset(bigquery_connection, request.node.name)
    dataset.make(SHIPS)
    return dataset


def parquet(*names: str | None) -> io.BytesIO:
    at = pa.array(range(len(names)), pa.timestamp("us", tz="UTC"))
    schema = pa.schema([pa.field("at", at.type, nullable=False), ("name", pa.string())])
    file = io.BytesIO()
    pq.write_table(pa.table([at, pa.array(names, pa.string())], schema=schema), file)
    file.seek(0)
    return file


@pytest.mark.bigquery
def test_what_is_appended_is_read_by_query_and_by_storage(
    ships: Dataset, bigquery_connection: BigQueryConnection
) -> None:
    ships.append_parquet("ships", parquet("Heron", None))
    ships.append_parquet("ships", parquet("Osprey"))
    found = ships.query("SELECT name FROM `{dataset}.ships` ORDER BY name")
    assert [row[0] for row in found] == [None, "Heron", "Osprey"]

    from google.cloud.bigquery_storage_v1 import types

    project, dataset = ships.id.split(".")
    reader = connect_storage(bigquery_connection)
    session = reader.create_read_session(
        parent=f"projects/{project}",
        read_session=types.ReadSession(
            table=f"projects/{project}/datasets/{dataset}/tables/ships",
            data_format=types.DataFormat.ARROW,
        ),
        max_stream_count=1,
    )
    schema = pa.ipc.read_schema(pa.py_buffer(session.arrow_schema.serialized_schema))
    batches = [
        pa.ipc.read_record_batch(
            pa.py_buffer(page.arrow_record_batch.serialized_record_batch), schema
        )
        for page in reader.read_rows(session.streams[0].name)
    ]
    names = pa.Table.from_batches(batches)["name"].to_pylist()
    assert sorted(names, key=str) == ["Heron", None, "Osprey"]


@pytest.mark.bigquery
def test_a_table_is_made_once_with_partitions_clusters_and_modes(
    ships: Dataset, bigquery_connection: BigQueryConnection
) -> None:
    ships.append_parquet("ships", parquet("Heron"))
    ships.make(SHIPS)
    table = connect(bigquery_connection).get_table(f"{ships.id}.ships")
    assert table.num_rows == 1
    assert table.time_partitioning.field == "at"
    assert table.clustering_fields == ["name"]
    assert [field.mode for field in table.schema] == ["REQUIRED", "NULLABLE"]


@pytest.mark.bigquery
def test_labels_are_kept_and_a_missing_table_has_none(ships: Dataset) -> None:
    ships.label("ships", {"a": "1", "b": ""})
    ships.label("ships", {"a": "2"})
    assert ships.labels("ships") == {"a": "2", "b": ""}
    assert ships.labels("boats") is None


@pytest.mark.bigquery
def test_changes_say_how_many_rows_they_reached_and_drop_is_final(ships: Dataset) -> None:
    ships.append_parquet("ships", parquet("Heron", "Osprey", "Orca"))
    deleted = ships.change(
        "DELETE FROM `{dataset}.ships` WHERE name IN UNNEST(@names)", {"names": ["Orca", "Heron"]}
    )
    assert deleted == 2
    ships.drop("ships")
    ships.drop("ships")
    assert ships.labels("ships") is None


@pytest.mark.bigquery
def test_a_refused_query_fails_at_once_and_says_why(ships: Dataset) -> None:
    begun = time.monotonic()
    with pytest.raises(
        BigQueryRefused,
        match=r"failed while reading from local\S*: Syntax error.* What was stored before is safe",
    ):
        ships.query("SELECT FROM WHERE")
    assert time.monotonic() - begun < 10


def test_no_answer_is_one_clear_error_within_seconds() -> None:
    begun = time.monotonic()
    with pytest.raises(BigQueryUnavailable) as away:
        Dataset(NOWHERE, "any").query("SELECT 1")
    assert str(away.value) == (
        "BigQuery does not answer at http://127.0.0.1:9, while reading from demo.any. What was"
        " stored before is safe; start the local stack with `bqh up` and try again."
    )
    assert time.monotonic() - begun < 15


@pytest.mark.bigquery
def test_its_jobs_are_labelled_and_its_queries_limited(
    ships: Dataset, bigquery_connection: BigQueryConnection
) -> None:
    with FaultProxy(str(bigquery_connection.endpoint)) as proxy:
        limited = bigquery_connection.model_copy(
            update={"endpoint": proxy.url, "max_bytes_billed": 12_345}
        )
        dataset = Dataset(limited, ships.id.split(".")[1])
        dataset.append_parquet("ships", parquet("Heron"))
        dataset.query("SELECT COUNT(*) FROM `{dataset}.ships`")
        dataset.change("DELETE FROM `{dataset}.ships` WHERE TRUE")
        starts = [
            json.loads(seen.body)["configuration"]
            for seen in proxy.seen()
            if seen.method == "POST" and seen.path.split("?")[0].endswith("/jobs")
        ]

    assert [start["labels"] for start in starts] == [{"bqh": "sample-data"}] * 3
    assert [start["query"]["maximumBytesBilled"] for start in starts[1:]] == ["12345"] * 2
