"""A gRPC server before BigQuery's Storage API: it loses sessions and falls silent where told to."""

import threading
from collections.abc import Container, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from google.cloud.bigquery_storage_v1 import types

_SERVICE = "/google.cloud.bigquery.storage.v1.BigQueryRead"


MOST_READS = 20  # more than any test needs: what reads on without end must fail, not hang


class StorageProxy:
    """Passes requests on; some reads are answered NOT_FOUND, and some fall silent."""

    def __init__(self, target: str) -> None:
        self._channel = grpc.insecure_channel(
            target, options=[("grpc.max_receive_message_length", -1)]
        )
        self.lost: Container[int] = ()  # reads that are answered NOT_FOUND, counted from 0
        self.lost_after = 0  # messages before such an answer
        self.cancelled: Container[int] = ()  # reads that the server cancels
        self.silent_after: int | None = None  # messages after which nothing comes any more
        self.offsets: list[int] = []  # of each read
        self.sessions = 0
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._server = grpc.server(
            ThreadPoolExecutor(16), options=[("grpc.max_send_message_length", -1)]
        )
        self._server.add_generic_rpc_handlers((_Handler(self),))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def open(self, request: bytes, context: Any) -> bytes:
        """A session of the real server."""
        with self._lock:
            self.sessions += 1
        call = self._channel.unary_unary(f"{_SERVICE}/CreateReadSession")
        answer: bytes = call(request, metadata=_routing(context))
        return answer

    def read(self, request: bytes, context: Any) -> Iterator[bytes]:
        """The messages of a stream, as far as they are let through."""
        with self._lock:
            is_lost = len(self.offsets) in self.lost
            is_cancelled = len(self.offsets) in self.cancelled
            self.offsets.append(types.ReadRowsRequest.deserialize(request).offset)
        if len(self.offsets) > MOST_READS:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "a stream is opened again for ever")
        if is_cancelled:
            context.abort(grpc.StatusCode.CANCELLED, "The server is going away")
        call = self._channel.unary_stream(f"{_SERVICE}/ReadRows")
        for count, message in enumerate(call(request, metadata=_routing(context))):
            if is_lost and count >= self.lost_after:
                break
            if self.silent_after is not None and count >= self.silent_after:
                while not self._over.wait(0.02) and context.is_active():
                    pass
                return
            yield message
        if is_lost:
            context.abort(grpc.StatusCode.NOT_FOUND, "Requested entity was not found: the stream")

    def close(self) -> None:
        """Ends every read."""
        self._over.set()
        self._server.stop(None).wait()
        self._channel.close()


class _Handler(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, proxy: StorageProxy) -> None:
        self._proxy = proxy

    def service(self, details: Any) -> Any:
        if details.method == f"{_SERVICE}/CreateReadSession":
            return grpc.unary_unary_rpc_method_handler(self._proxy.open)
        if details.method == f"{_SERVICE}/ReadRows":
            return grpc.unary_stream_rpc_method_handler(self._proxy.read)
        return None


def _routing(context: Any) -> list[tuple[str, str]]:
    return [(k, v) for k, v in context.invocation_metadata() if k == "x-goog-request-params"]


@contextmanager
def storage_proxy(target: str) -> Iterator[StorageProxy]:
    """Closed at the end of the block."""
    proxy = StorageProxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
