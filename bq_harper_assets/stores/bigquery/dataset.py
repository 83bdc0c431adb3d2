"""Makes, fills, labels, changes and drops tables of our own, such as the sample data."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.client import connect
from bq_harper_assets.stores.bigquery.errors import Feature, google_errors
from bq_harper_assets.stores.bigquery.job_settings import JOB_TIMEOUT_S, Value, query_settings

if TYPE_CHECKING:
    from google.cloud import bigquery

# The emulator answers 500 if it cannot do something, and the library repeats it for ten minutes.
EMULATOR_PATIENCE_S = 3.0
SERVICE_PATIENCE_S = 120.0
_LABELS = {"bqh": "sample-data"}

Parameter = Value | Sequence[Value]


@dataclass(frozen=True)
class BigQueryColumn:
    """A BigQuery column belongs to a table to be made; its type is spelled as in BigQuery."""

    name: str
    type: str
    required: bool = False


@dataclass(frozen=True)
class TableShape:
    """A table shape is what a new table needs: columns, day partitions by a column, clustering."""

    name: str
    columns: tuple[BigQueryColumn, ...]
    day_column: str
    clustering: tuple[str, ...]


class Dataset:
    """A dataset gives access to its tables by name."""

    def __init__(self, connection: BigQueryConnection, name: str) -> None:
        from google.cloud.bigquery import DEFAULT_RETRY

        self.connection = connection
        self.id = f"{connection.project}.{name}"
        self._client = connect(connection)
        patience = EMULATOR_PATIENCE_S if connection.endpoint else SERVICE_PATIENCE_S
        self._retry = DEFAULT_RETRY.with_timeout(patience)

    def make(self, shape: TableShape) -> None:
        """Makes the dataset and the table if they are missing; an existing table stays as it is."""
        from google.cloud import bigquery

        dataset = bigquery.Dataset(self.id)
        dataset.location = self.connection.location
        table = bigquery.Table(
            f"{self.id}.{shape.name}",
            schema=[
                bigquery.SchemaField(c.name, c.type, mode="REQUIRED" if c.required else "NULLABLE")
                for c in shape.columns
            ],
        )
        table.time_partitioning = bigquery.TimePartitioning(field=shape.day_column)
        table.clustering_fields = list(shape.clustering)
        with self._errors("making", shape.name):
            self._client.create_dataset(dataset, exists_ok=True, retry=self._retry)
            self._client.create_table(table, exists_ok=True, retry=self._retry)

    def labels(self, table: str) -> dict[str, str] | None:
        """Returns the labels of a table, or None if there is no such table."""
        from google.api_core.exceptions import NotFound

        with self._errors("looking at", table):
            try:
                return dict(self._client.get_table(f"{self.id}.{table}", retry=self._retry).labels)
            except NotFound:
                return None

    def required_columns(self, table: str) -> set[str]:
        """Returns those columns of an existing table that cannot be NULL."""
        with self._errors("looking at", table):
            known = self._client.get_table(f"{self.id}.{table}", retry=self._retry)
            return {field.name for field in known.schema if field.mode == "REQUIRED"}

    def label(self, table: str, labels: Mapping[str, str]) -> None:
        """Sets these labels; other labels stay."""
        with self._errors("labelling", table):
            known = self._client.get_table(f"{self.id}.{table}", retry=self._retry)
            known.labels = {**known.labels, **labels}
            self._client.update_table(known, ["labels"], retry=self._retry)

    def append_parquet(self, table: str, file: IO[bytes]) -> None:
        """Appends all rows of the file, or none."""
        from google.cloud import bigquery

        settings = bigquery.LoadJobConfig(
            labels=_LABELS,
            source_format=bigquery.SourceFormat.PARQUET,
            write_disposition=bigquery.WriteDisposition.WRITE_APPEND,
            create_disposition=bigquery.CreateDisposition.CREATE_NEVER,
        )
        with self._errors("loading rows into", table):
            # `size` is left out, because the emulator takes resumable uploads only.
            job = self._client.load_table_from_file(file, f"{self.id}.{table}", job_config=settings)
            job.result(retry=self._retry, timeout=JOB_TIMEOUT_S)

    def query(self, sql: str, parameters: Mapping[str, Parameter] | None = None) -> list[Any]:
        """Returns the rows of a query; `{dataset}` in the text stands for this dataset."""
        with self._errors("reading from"):
            return list(self._run(sql, parameters).result(retry=self._retry, timeout=JOB_TIMEOUT_S))

    def change(self, sql: str, parameters: Mapping[str, Parameter] | None = None) -> int:
        """Runs an INSERT, UPDATE or DELETE, and returns how many rows it affected."""
        with self._errors("changing rows of"):
            job = self._run(sql, parameters)
            job.result(retry=self._retry, timeout=JOB_TIMEOUT_S)
            return job.num_dml_affected_rows or 0

    def drop(self, table: str) -> None:
        """Drops a table; it is no error if there is no such table."""
        with self._errors("dropping", table):
            self._client.delete_table(f"{self.id}.{table}", not_found_ok=True, retry=self._retry)

    def _errors(self, doing: str, table: str | None = None) -> AbstractContextManager[None]:
        name = f"{self.id}.{table}" if table else self.id
        return google_errors(self.connection, f"{doing} {name}", Feature.FILL)

    def _run(self, sql: str, parameters: Mapping[str, Parameter] | None) -> "bigquery.QueryJob":
        limit = self.connection.max_bytes_billed
        return self._client.query(
            sql.replace("{dataset}", self.id),
            job_config=query_settings(parameters or {}, _LABELS, limit),
            retry=self._retry,
            job_retry=None,
        )
