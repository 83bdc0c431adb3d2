"""Clients for BigQuery: they reach the emulator, and fail fast with what to type next."""

import io
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.client import (
    BigQueryRefused,
    BigQueryUnavailable,
    Column,
    Dataset,
    TableShape,
    connect,
    connect_storage,
)

SHIPS = TableShape(
    "ships",
    (Column("at", "TIMESTAMP", required=True), Column("name", "STRING")),
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
        BigQueryRefused, match=r"refused: Syntax error.* What was loaded before is safe"
    ):
        ships.query("SELECT FROM WHERE")
    assert time.monotonic() - begun < 10


def test_no_answer_is_one_clear_error_within_seconds() -> None:
    begun = time.monotonic()
    with pytest.raises(BigQueryUnavailable) as away:
        Dataset(NOWHERE, "any").query("SELECT 1")
    assert str(away.value) == (
        "BigQuery does not answer at http://127.0.0.1:9. Nothing was changed; start the local stack"
        " with `bqh up`, then type the same command again."
    )
    assert time.monotonic() - begun < 15


def test_an_emulator_without_a_storage_address_is_refused_with_the_variable() -> None:
    with pytest.raises(BigQueryRefused, match="set BIGQUERY_EMULATOR_STORAGE_HOST"):
        connect_storage(NOWHERE)


def test_a_missing_key_file_is_named(tmp_path: Path) -> None:
    connection = BigQueryConnection(project="demo", credentials=tmp_path / "key.json")
    for call in (connect, connect_storage):
        with pytest.raises(BigQueryUnavailable, match=r"key\.json is not there"):
            call(connection)


def test_missing_default_credentials_point_to_doctor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    with pytest.raises(BigQueryUnavailable, match=r"see `bqh doctor`"):
        connect(BigQueryConnection(project="demo"))
