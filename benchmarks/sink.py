"""A server in Harper's place that only reads what it is sent: what is left is the sender's cost.

python -m benchmarks.sink MARKER: prints its port; a row is counted wherever MARKER occurs.
"""

import asyncio
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from bq_harper_assets.contract.connections import HarperConnection

ROOT = Path(__file__).resolve().parents[1]
_OPERATION = b'{"operation":"'
_UPSERT = _OPERATION + b"upsert"


class _Tables:
    """As much of Harper's other operations as a run needs."""

    def __init__(self) -> None:
        self._described: dict[str, dict[str, Any]] = {}

    def answer(self, body: bytes) -> tuple[int, Any]:
        asked = json.loads(body)
        operation, name = asked["operation"], asked.get("table")
        if operation == "describe_table":
            if name not in self._described:
                return 404, {"error": f"Table 'data.{name}' does not exist"}
            return 200, self._described[name]
        if operation == "create_table":
            self._described[name] = {
                "schema": "data",
                "name": name,
                "hash_attribute": asked["primary_key"],
                "attributes": [
                    {"attribute": each.pop("name"), **each} for each in asked["attributes"]
                ],
                "schema_defined": True,
                "audit": True,
                "record_count": 0,
            }
            return 200, {"message": f"table 'data.{name}' successfully created."}
        if operation == "system_information":
            return 200, {"threads": [{"name": "http"}]}
        return 200, []


class _Connection(asyncio.Protocol):
    def __init__(self, marker: bytes, tables: _Tables, keep: Callable[[bytes], None]) -> None:
        self._marker = marker
        self._tables = tables
        self._keep = keep
        self._received = bytearray()
        self._needed = 0  # bytes of the whole request, once its head is there
        self._head = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._needed:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                return
            self._head = end + 4
            lines = bytes(self._received[:end]).lower().split(b"\r\n")
            length = next(line for line in lines if line.startswith(b"content-length:"))
            self._needed = self._head + int(length.partition(b":")[2])
        if len(self._received) >= self._needed:
            body = bytes(memoryview(self._received)[self._head : self._needed])
            self._received = bytearray()
            self._needed = 0
            self._answer(body)

    def _answer(self, body: bytes) -> None:
        status = 200
        if body.startswith(_OPERATION) and not body.startswith(_UPSERT):
            status, told = self._tables.answer(body)
        else:
            self._keep(body)
            rows = body.count(self._marker)
            told = {"message": f"upserted {rows} of {rows} records", "skipped_hashes": []}
        content = json.dumps(told, separators=(",", ":")).encode()
        head = f"HTTP/1.1 {status} .\r\nContent-Type: application/json\r\n"
        self._transport.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)


async def _serve(marker: str, keep: Callable[[bytes], None], is_up: Callable[[int], None]) -> None:
    tables = _Tables()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: _Connection(marker.encode(), tables, keep), "127.0.0.1", 0
    )
    is_up(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def _connection(port: int) -> HarperConnection:
    return HarperConnection(url=f"http://127.0.0.1:{port}", user="sink", password=SecretStr("-"))


@contextmanager
def sink(marker: str) -> Iterator[tuple[HarperConnection, int]]:
    """In another process: how to reach it, and its process id."""
    command = [sys.executable, "-m", "benchmarks.sink", marker]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            yield _connection(int(process.stdout.readline())), process.pid
        finally:
            process.kill()


@contextmanager
def keeping_sink(marker: str) -> Iterator[tuple[HarperConnection, list[bytes]]]:
    """In this process, with the bodies of the upserts it was sent."""
    kept: list[bytes] = []
    ports: queue.Queue[int] = queue.Queue()
    loop = asyncio.new_event_loop()
    serving = loop.create_task(_serve(marker, kept.append, ports.put))

    def serve() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(serving)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield _connection(ports.get()), kept
    loop.call_soon_threadsafe(serving.cancel)
    thread.join()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], lambda body: None, lambda port: print(port, flush=True)))
