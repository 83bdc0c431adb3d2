"""A Storage API of BigQuery on loopback, whose streams send the batches that a test gives it."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import grpc
import pyarrow as pa
from google.cloud.bigquery_storage_v1 import types

_SERVICE = "/google.cloud.bigquery.storage.v1.BigQueryRead"


@dataclass
class StorageByHand:
    """A Storage API whose streams send these batches, one per message."""

    schema: pa.Schema
    streams: Mapping[str, Sequence[pa.RecordBatch]]
    # Of each read in turn: after so many messages with rows it ends with the code, or, without
    # a code, nothing comes any more.
    faults: list[tuple[int, grpc.StatusCode | None]] = field(default_factory=list)
    estimated_bytes: int = 0
    sessions: list[types.CreateReadSessionRequest] = field(default_factory=list)
    reads: list[types.ReadRowsRequest] = field(default_factory=list)
    given_up: list[bool] = field(default_factory=list)  # by the reader, while nothing came
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "StorageByHand":
        self._server = grpc.server(ThreadPoolExecutor(4))
        self._server.add_generic_rpc_handlers((_StorageHandler(self),))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._server.stop(None).wait()

    def open(self, request: types.CreateReadSessionRequest, _: Any) -> types.ReadSession:
        """A session with all streams."""
        self.sessions.append(request)
        return types.ReadSession(
            streams=[types.ReadStream(name=name) for name in self.streams],
            arrow_schema=types.ArrowSchema(serialized_schema=self.schema.serialize().to_pybytes()),
            estimated_total_bytes_scanned=self.estimated_bytes,
        )

    def read(
        self, request: types.ReadRowsRequest, context: Any
    ) -> Iterator[types.ReadRowsResponse]:
        """The rows of a stream from an offset on, after a message that has none."""
        self.reads.append(request)
        fault = self.faults.pop(0) if self.faults else None
        yield types.ReadRowsResponse()
        left = request.offset
        for number, batch in enumerate(self.streams[request.read_stream]):
            if fault is not None and number == fault[0]:
                if fault[1] is None:
                    context.add_callback(self._over.set)
                    self.given_up.append(self._over.wait(5))
                    self._over.clear()
                    return
                context.abort(fault[1], "told by hand")
            if left < batch.num_rows:
                message = batch.slice(left).serialize().to_pybytes()
                yield types.ReadRowsResponse(
                    arrow_record_batch=types.ArrowRecordBatch(serialized_record_batch=message)
                )
            left = max(left - batch.num_rows, 0)


class _StorageHandler(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, service: StorageByHand) -> None:
        self._service = service

    def service(self, details: Any) -> Any:
        if details.method == f"{_SERVICE}/CreateReadSession":
            return grpc.unary_unary_rpc_method_handler(
                self._service.open,
                types.CreateReadSessionRequest.deserialize,
                types.ReadSession.serialize,
            )
        return grpc.unary_stream_rpc_method_handler(
            self._service.read,
            types.ReadRowsRequest.deserialize,
            types.ReadRowsResponse.serialize,
        )
