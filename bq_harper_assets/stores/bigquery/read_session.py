"""Rows through the Storage API: one session, its streams read anywhere, each row exactly once."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.calls import NO_RETRY, REQUEST_TIMEOUT_S, BigQueryCalls
from bq_harper_assets.stores.bigquery.client import connect_storage
from bq_harper_assets.stores.bigquery.errors import Feature
from bq_harper_assets.stores.bigquery.table_ref import TableRef

if TYPE_CHECKING:
    import pyarrow as pa
    from google.cloud.bigquery_storage_v1 import BigQueryReadClient

# Also what ends a stream that has fallen silent; one that gave rows goes on where it was.
STREAM_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class ReadPlan:
    """A session as it travels to the tasks that read it: names and a schema, never rows."""

    table: TableRef
    streams: tuple[str, ...]  # none if no row fits
    schema: bytes  # Arrow, serialised
    estimated_rows: int  # before the restriction; 0 where the service does not say
    estimated_bytes: int


def open_session(
    client: "BigQueryReadClient",
    calls: BigQueryCalls,
    table: TableRef,
    columns: Sequence[str],
    restriction: str,
    snapshot_time: datetime | None,
    max_streams: int,
    *,
    compression: Literal["lz4", "zstd"] | None = "lz4",
) -> ReadPlan:
    """These columns of these rows as they were at that time; None means as they are now."""
    from google.cloud.bigquery_storage_v1 import types

    codecs = types.ArrowSerializationOptions.CompressionCodec
    codec = {
        None: codecs.COMPRESSION_UNSPECIFIED,
        "lz4": codecs.LZ4_FRAME,
        "zstd": codecs.ZSTD,
    }[compression]
    asked = types.ReadSession(
        table=table.path,
        data_format=types.DataFormat.ARROW,
        read_options=types.ReadSession.TableReadOptions(
            selected_fields=list(columns),
            row_restriction=restriction,
            arrow_serialization_options=types.ArrowSerializationOptions(buffer_compression=codec),
        ),
    )
    if snapshot_time is not None:
        asked.table_modifiers = types.ReadSession.TableModifiers(snapshot_time=snapshot_time)
    session = calls.call(
        lambda: client.create_read_session(
            parent=f"projects/{calls.connection.project}",
            read_session=asked,
            max_stream_count=max_streams,
            retry=NO_RETRY,
            timeout=REQUEST_TIMEOUT_S,
        ),
        doing="opening a read session",
        feature=Feature.READ,
        table=str(table),
    )
    return ReadPlan(
        table=table,
        streams=tuple(stream.name for stream in session.streams),
        schema=session.arrow_schema.serialized_schema,
        estimated_rows=session.estimated_row_count,
        estimated_bytes=session.estimated_total_bytes_scanned,
    )


def read_stream(
    connection: BigQueryConnection,
    stream: str,
    schema: bytes,
    offset: int = 0,
    *,
    calls: BigQueryCalls | None = None,
    client: "BigQueryReadClient | None" = None,
    timeout_s: float = STREAM_TIMEOUT_S,
) -> Iterator["pa.RecordBatch"]:
    """The rows of one stream from `offset` on; a stream that breaks goes on where it broke."""
    import pyarrow as pa

    calls = calls or BigQueryCalls(connection)
    own_client = None if client else connect_storage(connection)
    reader = _Reader(client or own_client, stream, offset, timeout_s)
    arrow_schema = pa.ipc.read_schema(pa.py_buffer(schema))
    try:
        while True:
            message = calls.call(
                reader.next_message,
                doing=f"reading rows from {reader.offset} on",
                feature=Feature.READ,
            )
            if message is None:
                return
            rows = message.arrow_record_batch.serialized_record_batch
            if not rows:  # a message may tell of progress only
                continue
            batch = decode(rows, arrow_schema)
            reader.offset += batch.num_rows
            yield batch
    finally:
        reader.close()
        if own_client is not None:
            own_client.transport.close()  # type: ignore[no-untyped-call]


def decode(message: bytes, schema: "pa.Schema") -> "pa.RecordBatch":
    """One message's rows; the message itself says whether and how it is compressed."""
    import pyarrow as pa

    return pa.ipc.read_record_batch(pa.py_buffer(message), schema)


class _Reader:
    """The service's stream, opened again at `offset` after any fault."""

    def __init__(
        self, client: "BigQueryReadClient | None", stream: str, offset: int, timeout_s: float
    ) -> None:
        from google.cloud.bigquery_storage_v1.services.big_query_read import BigQueryReadClient

        # The library's own reader reconnects by itself, without limit and without a word.
        self._open: Callable[..., Any] = BigQueryReadClient.read_rows
        self._client = client
        self._stream = stream
        self._timeout_s = timeout_s
        self._messages: Any = None
        self.offset = self._opened_at = offset

    def next_message(self) -> Any:
        """None at the end of the stream."""
        from google.api_core.exceptions import DeadlineExceeded

        try:
            if self._messages is None:
                self._opened_at = self.offset
                self._messages = self._open(
                    self._client,
                    read_stream=self._stream,
                    offset=self.offset,
                    retry=NO_RETRY,
                    timeout=self._timeout_s,
                )
            return next(iter(self._messages), None)
        except DeadlineExceeded:
            self.close()
            if self.offset == self._opened_at:
                raise
            return self.next_message()  # it gave rows, and whoever reads them was slow: no fault
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """Tells the service to stop sending."""
        if self._messages is not None:
            self._messages.cancel()
        self._messages = None
