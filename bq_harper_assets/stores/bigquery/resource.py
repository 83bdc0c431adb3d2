"""Extends Dagster's BigQuery resource by the emulator, key files and our retries."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dagster_gcp import BigQueryResource
from google.cloud import bigquery
from pydantic import Field

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.client import connect


class BigQueryConnectionResource(BigQueryResource):
    """Connects to BigQuery; an asset that takes a BigQueryResource can use it."""

    project: str = Field(description="Project that is read, and billed for queries")
    location: str = Field(default="US", description="Location of the datasets and of every job")
    endpoint: str | None = Field(
        default=None, description="http://host:port of the emulator; then no credentials are used"
    )
    storage_endpoint: str | None = Field(
        default=None, description="host:port of the emulator's Storage API"
    )
    credentials: str | None = Field(
        default=None,
        description="Path of a key file; left out: application default credentials",
    )
    max_retries: int | None = Field(
        default=None,
        description="How often a call that failed is sent again; left out: 5 times, and answers"
        " that say 'not now' (429, 503) for as long as the table's giveUpAfter says",
    )
    initial_retry_delay_ms: int = Field(
        default=1000, description="Milliseconds before the first retry; doubles with each"
    )

    max_bytes_billed: int | None = Field(
        default=None, description="Most bytes one query may be billed for; left out: no limit"
    )
    results_dataset: str = Field(
        default="bqh_results", description="Dataset in which results of queries are kept for a run"
    )

    @classmethod
    def from_connection(cls, connection: BigQueryConnection) -> "BigQueryConnectionResource":
        """Makes the resource for a profile's connection."""
        return cls(
            project=connection.project,
            location=connection.location,
            endpoint=connection.endpoint,
            storage_endpoint=connection.storage_endpoint,
            credentials=str(connection.credentials) if connection.credentials else None,
            max_retries=connection.max_retries,
            initial_retry_delay_ms=connection.initial_retry_delay_ms,
            max_bytes_billed=connection.max_bytes_billed,
            results_dataset=connection.results_dataset,
        )

    def connection(self) -> BigQueryConnection:
        """Returns the connection that the stores take."""
        return BigQueryConnection(
            project=self.project,
            location=self.location,
            endpoint=self.endpoint,
            storage_endpoint=self.storage_endpoint,
            credentials=Path(self.credentials) if self.credentials else None,
            max_retries=self.max_retries,
            initial_retry_delay_ms=self.initial_retry_delay_ms,
            max_bytes_billed=self.max_bytes_billed,
            results_dataset=self.results_dataset,
        )

    @contextmanager
    def get_client(self) -> Iterator[bigquery.Client]:
        """Opens a client, which is closed at the end of the block."""
        if self.gcp_credentials:  # this is Dagster's own way: the key in base64, from an EnvVar
            with super().get_client() as client:
                yield client
            return
        with connect(self.connection()) as client:
            yield client
