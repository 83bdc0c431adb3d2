"""How we talk to BigQuery and to its emulator: clients, and verbs that make, fill and empty tables.

BigQueryError
├── BigQueryUnavailable   no answer, or no credentials: the same command may work later
└── BigQueryRefused       BigQuery answered no: the same command will not work again
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.errors import BqhError

# Google's libraries take seconds to import and most commands need none: imported where used.
if TYPE_CHECKING:
    from google.cloud import bigquery
    from google.cloud.bigquery_storage_v1 import BigQueryReadClient

# The emulator answers 500 to what it cannot do, and the library repeats a 500 for ten minutes.
EMULATOR_PATIENCE_S = 3.0
SERVICE_PATIENCE_S = 120.0
JOB_TIMEOUT_S = 3600.0

Parameter = datetime | Sequence[datetime] | Sequence[str]


class BigQueryError(BqhError):
    """BigQuery could not do what was asked."""


class BigQueryUnavailable(BigQueryError):
    """No answer, or no credentials: the same command may work later."""


class BigQueryRefused(BigQueryError):
    """BigQuery answered no: the same command will not work again."""


@dataclass(frozen=True)
class Column:
    """One column, typed as BigQuery spells it."""

    name: str
    type: str
    required: bool = False


@dataclass(frozen=True)
class TableShape:
    """What it takes to make a table: columns, the column of its day partitions, and clustering."""

    name: str
    columns: tuple[Column, ...]
    day_column: str
    clustering: tuple[str, ...]


def connect(connection: BigQueryConnection) -> "bigquery.Client":
    """For the emulator where `endpoint` is set, else with a key file or default credentials."""
    from google.api_core.client_options import ClientOptions
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import bigquery

    if connection.endpoint is not None:
        return bigquery.Client(
            project=connection.project,
            location=connection.location,
            credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]
            client_options=ClientOptions(api_endpoint=connection.endpoint),
        )
    with speaking_to(connection):
        if connection.credentials is not None:
            _require_key_file(connection.credentials)
            return bigquery.Client.from_service_account_json(  # type: ignore[no-any-return,no-untyped-call]
                str(connection.credentials),
                project=connection.project,
                location=connection.location,
            )
        return bigquery.Client(project=connection.project, location=connection.location)


def _require_key_file(file: Path) -> None:
    if not file.is_file():
        raise BigQueryUnavailable(
            f"the key file {file} is not there. Nothing was sent; set"
            " GOOGLE_APPLICATION_CREDENTIALS or `credentials` to a service account's key, then see"
            " `bqh doctor`."
        )


def connect_storage(connection: BigQueryConnection) -> "BigQueryReadClient":
    """A Storage Read client; plain text to the emulator, with no limit on message size."""
    from google.cloud.bigquery_storage_v1 import BigQueryReadClient

    if connection.endpoint is None:
        with speaking_to(connection):
            if connection.credentials is not None:
                _require_key_file(connection.credentials)
                key_file = str(connection.credentials)
                return BigQueryReadClient.from_service_account_file(key_file)  # type: ignore[no-any-return]
            return BigQueryReadClient()  # type: ignore[no-untyped-call]
    if connection.storage_endpoint is None:
        raise BigQueryRefused(
            f"the emulator's REST address is set ({connection.endpoint}) but not its Storage"
            " address. Nothing was read; set BIGQUERY_EMULATOR_STORAGE_HOST to host:port."
        )
    import grpc  # type: ignore[import-untyped]
    from google.cloud.bigquery_storage_v1.services.big_query_read.transports import (
        BigQueryReadGrpcTransport,
    )

    channel = grpc.insecure_channel(
        connection.storage_endpoint, options=[("grpc.max_receive_message_length", -1)]
    )
    transport = BigQueryReadGrpcTransport(channel=channel)
    return BigQueryReadClient(transport=transport)  # type: ignore[no-untyped-call]


def _first_line(text: str | None) -> str:
    """The library adds stack traces, job ids and terminal colours below it."""
    return (text or "no reason given").splitlines()[0].rstrip(".") + "."


@contextmanager
def speaking_to(connection: BigQueryConnection) -> Iterator[None]:
    """Turns what the library raises into errors that say what to type next."""
    import requests
    from google.api_core.exceptions import GoogleAPICallError, RetryError, ServerError
    from google.auth.exceptions import GoogleAuthError

    where = connection.endpoint or f"project {connection.project}"
    try:
        yield
    except (
        requests.exceptions.RequestException,
        RetryError,
        ServerError,
        GoogleAuthError,
    ) as error:
        refused = isinstance(error, requests.exceptions.ConnectionError) or isinstance(
            error.__cause__, requests.exceptions.ConnectionError
        )
        if connection.endpoint is not None and refused:
            raise BigQueryUnavailable(
                f"BigQuery does not answer at {where}. Nothing was changed; start the local stack"
                " with `bqh up`, then type the same command again."
            ) from error
        raise BigQueryUnavailable(
            f"BigQuery ({where}) could not be used: {_first_line(str(error))} What was loaded"
            " before is safe; see `bqh doctor`."
        ) from error
    except GoogleAPICallError as error:
        raise BigQueryRefused(
            f"BigQuery ({where}) refused: {_first_line(error.message)} What was loaded before is"
            " safe; see `bqh doctor`."
        ) from error


class Dataset:
    """The tables of one dataset, by name."""

    def __init__(self, connection: BigQueryConnection, name: str) -> None:
        from google.cloud.bigquery import DEFAULT_RETRY

        self.connection = connection
        self.id = f"{connection.project}.{name}"
        self._client = connect(connection)
        patience = EMULATOR_PATIENCE_S if connection.endpoint else SERVICE_PATIENCE_S
        self._retry = DEFAULT_RETRY.with_timeout(patience)

    def make(self, shape: TableShape) -> None:
        """Makes the dataset and the table if missing; a table that is there stays as it is."""
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
        with speaking_to(self.connection):
            self._client.create_dataset(dataset, exists_ok=True, retry=self._retry)
            self._client.create_table(table, exists_ok=True, retry=self._retry)

    def labels(self, table: str) -> dict[str, str] | None:
        """None if there is no such table."""
        from google.api_core.exceptions import NotFound

        with speaking_to(self.connection):
            try:
                return dict(self._client.get_table(f"{self.id}.{table}", retry=self._retry).labels)
            except NotFound:
                return None

    def required_columns(self, table: str) -> set[str]:
        """The columns of a table that is there which cannot be NULL."""
        with speaking_to(self.connection):
            known = self._client.get_table(f"{self.id}.{table}", retry=self._retry)
            return {field.name for field in known.schema if field.mode == "REQUIRED"}

    def label(self, table: str, labels: Mapping[str, str]) -> None:
        """Sets these labels; others stay."""
        with speaking_to(self.connection):
            known = self._client.get_table(f"{self.id}.{table}", retry=self._retry)
            known.labels = {**known.labels, **labels}
            self._client.update_table(known, ["labels"], retry=self._retry)

    def append_parquet(self, table: str, file: IO[bytes]) -> None:
        """All rows of the file or none."""
        from google.cloud import bigquery

        settings = bigquery.LoadJobConfig(
            source_format=bigquery.SourceFormat.PARQUET,
            write_disposition=bigquery.WriteDisposition.WRITE_APPEND,
            create_disposition=bigquery.CreateDisposition.CREATE_NEVER,
        )
        with speaking_to(self.connection):
            # Without `size`: the emulator takes resumable uploads only.
            job = self._client.load_table_from_file(file, f"{self.id}.{table}", job_config=settings)
            job.result(retry=self._retry, timeout=JOB_TIMEOUT_S)

    def query(self, sql: str, parameters: Mapping[str, Parameter] | None = None) -> list[Any]:
        """The rows of a query; `{dataset}` in the text stands for this dataset."""
        with speaking_to(self.connection):
            return list(self._run(sql, parameters).result(retry=self._retry, timeout=JOB_TIMEOUT_S))

    def change(self, sql: str, parameters: Mapping[str, Parameter] | None = None) -> int:
        """Rows affected by an INSERT, UPDATE or DELETE."""
        with speaking_to(self.connection):
            job = self._run(sql, parameters)
            job.result(retry=self._retry, timeout=JOB_TIMEOUT_S)
            return job.num_dml_affected_rows or 0

    def drop(self, table: str) -> None:
        """Also fine if there is no such table."""
        with speaking_to(self.connection):
            self._client.delete_table(f"{self.id}.{table}", not_found_ok=True, retry=self._retry)

    def _run(self, sql: str, parameters: Mapping[str, Parameter] | None) -> "bigquery.QueryJob":
        from google.cloud import bigquery

        settings = bigquery.QueryJobConfig(
            query_parameters=[
                bigquery.ScalarQueryParameter(name, "TIMESTAMP", value)
                if isinstance(value, datetime)
                else bigquery.ArrayQueryParameter(
                    name, "STRING" if isinstance(value[0], str) else "TIMESTAMP", list(value)
                )
                for name, value in (parameters or {}).items()
            ]
        )
        return self._client.query(
            sql.replace("{dataset}", self.id),
            job_config=settings,
            retry=self._retry,
            job_retry=None,
        )
