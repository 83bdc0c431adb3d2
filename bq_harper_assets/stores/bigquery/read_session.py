"""Reads rows through the Storage API: one session has streams, which give each row exactly once."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.calls import NO_RETRY, BigQueryCalls
from bq_harper_assets.stores.bigquery.client import connect_storage
from bq_harper_assets.stores.bigquery.errors import Feature, ReadSessionLost
from bq_harper_assets.stores.bigquery.table_ref import TableRef

if TYPE_CHECKING:
    import pyarrow as pa
    from google.cloud.bigquery_storage_v1 import BigQueryReadClient

# It limits one opening, also if the reader is slow; a stream that gave rows continues after them.
STREAM_TIMEOUT_S = 600.0
SILENCE_S = 30.0  # otherwise a half-open connection would be silent for ever


@dataclass(frozen=True, kw_only=True)
class ReadPlan:
    """A read plan is a session for the tasks that read it: names and a schema, never rows."""

    table: TableRef
    streams: tuple[str, ...]  # there are none if no row fits
    schema: bytes  # a serialised Arrow schema
    estimated_bytes: int  # it ignores the restriction, and is 0 if the service does not say


def open_session(
    client: "BigQueryReadClient",
    calls: BigQueryCalls,
    table: TableRef,
    columns: Sequence[str],
    restriction: str,
    snapshot_time: datetime | None,
    max_streams: int,
) -> ReadPlan:
    """Opens a session for columns and rows as they were at `snapshot_time`; None means now."""
    from google.cloud.bigquery_storage_v1 import types

    codec = types.ArrowSerializationOptions.CompressionCodec.LZ4_FRAME
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
            timeout=calls.request_s,
        ),
        doing="opening a read session",
        feature=Feature.READ,
        table=str(table),
    )
    return ReadPlan(
        table=table,
        streams=tuple(stream.name for stream in session.streams),
        schema=session.arrow_schema.serialized_schema,
        estimated_bytes=session.estimated_total_bytes_scanned,
    )


def read_stream(
    connection: BigQueryConnection,
    stream: str,
    schema: bytes,
    *,
    calls: BigQueryCalls | None = None,
    timeout_s: float = STREAM_TIMEOUT_S,
    silence_s: float = SILENCE_S,
) -> Iterator["pa.RecordBatch"]:
    """Reads one stream; if it breaks, it continues where it broke."""
    import pyarrow as pa

    calls = calls or BigQueryCalls(connection)
    client = connect_storage(connection)
    reader = _Reader(client, stream, timeout_s)
    arrow_schema = pa.ipc.read_schema(pa.py_buffer(schema))
    try:
        while True:
            message = calls.call(
                lambda: reader.next_message(calls.at_most_s(silence_s)),
                doing=f"reading rows from {reader.offset} on",
                feature=Feature.READ,
                limit_s=calls.at_most_s(silence_s),
            )
            if message is None:
                return
            rows = message.arrow_record_batch.serialized_record_batch
            if not rows:  # a message may report progress only
                continue
            batch = decode(rows, arrow_schema)
            reader.offset += batch.num_rows
            yield batch
    finally:
        reader.close()
        client.transport.close()  # type: ignore[no-untyped-call]


def decode(message: bytes, schema: "pa.Schema") -> "pa.RecordBatch":
    """Decodes one message's rows; the message itself says whether and how it is compressed."""
    import pyarrow as pa

    return pa.ipc.read_record_batch(pa.py_buffer(message), schema)


class _Reader:
    """A reader reads one stream of the service, and opens it again at `offset` after any fault."""

    def __init__(self, client: "BigQueryReadClient", stream: str, timeout_s: float) -> None:
        self._client = client
        self._stream = stream
        self._timeout_s = timeout_s
        self._messages: Any = None
        self.offset = self._opened_at = 0

    def next_message(self, silence_s: float) -> Any:
        """Returns the next message, None at the end; raises TimeoutError if none comes in time."""
        import grpc  # type: ignore[import-untyped]
        from google.api_core.exceptions import from_grpc_error

        if self._messages is None:
            self._opened_at = self.offset
            self._messages = self._open()
        messages, is_silent = self._messages, threading.Event()

        def end() -> None:
            is_silent.set()
            messages.cancel()

        silence = threading.Timer(silence_s, end)
        silence.daemon = True
        silence.start()
        try:
            return next(messages, None)
        except grpc.RpcError as error:
            gave_rows = self.offset > self._opened_at
            self.close()
            match error.code():
                case grpc.StatusCode.DEADLINE_EXCEEDED if gave_rows:
                    return self.next_message(silence_s)  # its reader was slow: no fault
                # BigQuery itself may cancel a stream too, with a reason of its own.
                case grpc.StatusCode.CANCELLED if is_silent.is_set():
                    raise TimeoutError(
                        f"the stream has sent nothing for {silence_s:g} s"
                    ) from error
                case grpc.StatusCode.NOT_FOUND | grpc.StatusCode.FAILED_PRECONDITION:
                    raise ReadSessionLost(
                        f"BigQuery has lost a read session: {_first_line(error.details())}. What"
                        " was stored before is safe; the session is opened again at the same"
                        " instant, by this run or the next: bqh sync"
                    ) from error
            raise from_grpc_error(error) from error  # type: ignore[no-untyped-call]
        finally:
            silence.cancel()

    def close(self) -> None:
        """Tells the service to stop sending."""
        if self._messages is not None:
            self._messages.cancel()
        self._messages = None

    def _open(self) -> Any:
        from google.api_core.gapic_v1.routing_header import to_grpc_metadata
        from google.cloud.bigquery_storage_v1 import types

        # The library's own reader reconnects by itself, without limit and without a word, and its
        # wrapper waits for the first message before there is anything that could be cancelled.
        read_rows: Any = self._client.transport.read_rows
        return read_rows(
            types.ReadRowsRequest(read_stream=self._stream, offset=self.offset),
            timeout=self._timeout_s,
            metadata=(to_grpc_metadata({"read_stream": self._stream}),),  # type: ignore[no-untyped-call]
        )


def _first_line(text: str | None) -> str:
    return (text or "it does not say why").splitlines()[0].rstrip(". ")
