"""A server in the place of BigQuery's Storage API: any number of different rows, made on the way.

python -m benchmarks.streams: prints its port. The stream `ROWS/PART/PARTS` has the rows of one of
so many parts. Message n + 1 of a part repeats an early one with its times moved on, so that no two
rows are equal, none is kept, and making them costs next to nothing.
"""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.encoder import NOON, positions
from benchmarks.sink import ROOT
from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window

MESSAGE_ROWS = 10_000
DIFFERENT = 16  # messages made once
HOUR = timedelta(hours=1)
TIME = "event_time"


@dataclass(frozen=True)
class Span:
    """So many rows in so many streams."""

    rows: int
    parts: int

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(f"{self.rows}/{part}/{self.parts}" for part in range(self.parts))

    def cells(self, slices: int) -> list[Cell]:
        """All cells that hold one of the rows."""
        hours = -(-self.rows // (DIFFERENT * MESSAGE_ROWS))
        windows = [Window(NOON + n * HOUR, NOON + (n + 1) * HOUR) for n in range(hours)]
        return [Cell(window, part) for window in windows for part in range(slices)]


def batches(stream: str) -> Iterator[pa.RecordBatch]:
    """The rows of a stream."""
    rows, part, parts = map(int, stream.split("/"))
    for number in range(part, -(-rows // MESSAGE_ROWS), parts):
        batch = _different(number % DIFFERENT)
        moved_on = number // DIFFERENT * 3_600_000_000
        moments = np.asarray(batch.column(TIME).view(pa.int64())) + moved_on
        times = pa.array(moments).cast(pa.timestamp("us", "UTC"))
        at = batch.schema.get_field_index(TIME)
        yield batch.set_column(at, TIME, times).slice(0, rows - number * MESSAGE_ROWS)


@cache
def _different(number: int) -> pa.RecordBatch:
    return positions(MESSAGE_ROWS, number)[1]


def _answers(request: Any, context: Any) -> Iterator[bytes]:
    from google.cloud.bigquery_storage_v1 import types

    options = pa.ipc.IpcWriteOptions(compression="lz4")
    for batch in batches(request.read_stream):
        message = types.ReadRowsResponse(row_count=batch.num_rows)
        message.arrow_record_batch = types.ArrowRecordBatch(
            serialized_record_batch=_message(batch, options)
        )
        yield types.ReadRowsResponse.serialize(message)


def _message(batch: pa.RecordBatch, options: pa.ipc.IpcWriteOptions) -> bytes:
    file = pa.BufferOutputStream()
    with pa.ipc.new_stream(file, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    messages = pa.ipc.MessageReader.open_stream(file.getvalue())
    messages.read_next_message()  # the schema
    content: bytes = messages.read_next_message().serialize().to_pybytes()
    return content


def _serve() -> None:
    import grpc
    from google.cloud.bigquery_storage_v1 import types

    read = grpc.unary_stream_rpc_method_handler(
        _answers, request_deserializer=types.ReadRowsRequest.deserialize
    )
    service = "google.cloud.bigquery.storage.v1.BigQueryRead"
    server = grpc.server(ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(service, {"ReadRows": read})]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    for number in range(DIFFERENT):
        _different(number)
    server.start()
    print(port, flush=True)
    server.wait_for_termination()


@contextmanager
def stream_server() -> Iterator[tuple[BigQueryConnection, int]]:
    """In another process: how to reach it, and its process id."""
    command = [sys.executable, "-m", "benchmarks.streams"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            address = f"127.0.0.1:{int(process.stdout.readline())}"
            connection = BigQueryConnection(
                project="streams", endpoint=f"http://{address}", storage_endpoint=address
            )
            yield connection, process.pid
        finally:
            process.kill()


if __name__ == "__main__":
    _serve()
