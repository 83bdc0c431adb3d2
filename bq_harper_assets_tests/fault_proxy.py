"""An HTTP server in front of a real one: it notes every request, and spoils those it is told to.

with FaultProxy(harper_url) as proxy:
    proxy.on(Answer(503), operation="upsert", times=2)
    ...  # talk to proxy.url
    assert len(proxy.seen(operation="upsert")) == 3
"""

import http.client
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal
from urllib.parse import urlsplit

# Of one connection only; the proxy writes its own.
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}
_OPERATION = re.compile(rb'"operation": ?"(\w+)"')
_TABLE = re.compile(rb'"table": ?"([^"]*)"')
_HEAD = 4096  # bytes of a body in which the operation and the table are found
FORWARD_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Answer:
    """Answered by the proxy; the server never hears of it."""

    status: int
    body: bytes | str | Mapping[str, Any] = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Delay:
    """Forwarded after so many seconds, or once the event is set; then answered as usual."""

    wait: float | threading.Event


@dataclass(frozen=True)
class LateAnswer:
    """Forwarded at once; the server's answer is held for so many seconds, or until the event."""

    wait: float | threading.Event


@dataclass(frozen=True)
class NoAnswer:
    """Forwarded and applied; then the connection is closed without a word."""


@dataclass(frozen=True)
class CutAnswer:
    """Forwarded and applied; the connection breaks after half of the answer's body."""


@dataclass(frozen=True)
class Reset:
    """The connection is reset before, inside or after the request's body; nothing is forwarded.

    Before and inside, a rule sees the operation and the table, and not the rest of the body.
    """

    when: Literal["before", "inside", "after"]


@dataclass(frozen=True)
class Stall:
    """Read, never forwarded, never answered, and the connection stays open until the proxy ends."""


Fault = Answer | Delay | LateAnswer | NoAnswer | CutAnswer | Reset | Stall


@dataclass(kw_only=True)
class Seen:
    """One request as it came in; the last five fields are filled in as it goes on."""

    at: float  # time.monotonic()
    method: str
    path: str
    operation: str | None  # of Harper's Operations API; None for other servers
    table: str | None
    size: int  # bytes of the body
    connection: int  # which of the client's connections it came by
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False, default=b"")
    records: int | None = None  # rows of an upsert, ids of a delete
    fault: Fault | None = None
    forwarded: bool = False
    status: int | None = None  # what the client was answered


@dataclass
class _Rule:
    fault: Fault
    matches: Callable[[Seen], bool]
    left: int


class FaultProxy:
    """Listens on a loopback port of its own while it is entered; safe to use from many threads."""

    def __init__(self, target: str, *, port: int = 0) -> None:
        parts = urlsplit(target)
        assert parts.hostname is not None
        self._target = (parts.hostname, parts.port or 80)
        self._lock = threading.Lock()
        self._rules: list[_Rule] = []
        self._seen: list[Seen] = []
        self._sockets: dict[int, socket.socket] = {}
        self._over = threading.Event()
        self._server = _Server(("127.0.0.1", port), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        """Where to send instead of to the real server."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "FaultProxy":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self.drop_connections()
        self._server.server_close()

    def on(
        self,
        fault: Fault,
        *,
        operation: str | None = None,
        table: str | None = None,
        matching: Callable[[Seen], bool] = lambda seen: True,
        times: int = 1,
    ) -> None:
        """Spoil the next `times` requests that match; rules apply in the order they were given."""

        def matches(seen: Seen) -> bool:
            return (
                operation in (None, seen.operation)
                and table in (None, seen.table)
                and matching(seen)
            )

        with self._lock:
            self._rules.append(_Rule(fault, matches, times))

    def heal(self) -> None:
        """Forget all rules."""
        with self._lock:
            self._rules.clear()

    def seen(self, *, operation: str | None = None, table: str | None = None) -> list[Seen]:
        """The requests so far, in the order they came in."""
        with self._lock:
            return [
                seen
                for seen in self._seen
                if operation in (None, seen.operation) and table in (None, seen.table)
            ]

    def drop_connections(self) -> None:
        """Close every connection of a client, as a server does with those that are idle."""
        with self._lock:
            sockets = list(self._sockets.values())
        for each in sockets:
            _shut(each)

    def note(self, seen: Seen) -> None:
        """For the handler: remember the request."""
        with self._lock:
            self._seen.append(seen)

    def fault_for(self, seen: Seen, *, has_body: bool) -> Fault | None:
        """For the handler: take the rule that applies; early resets are decided before the body."""
        with self._lock:
            for rule in self._rules:
                is_early = isinstance(rule.fault, Reset) and rule.fault.when != "after"
                if rule.left > 0 and is_early != has_body and rule.matches(seen):
                    rule.left -= 1
                    seen.fault = rule.fault
                    return rule.fault
            return None

    def opened(self, number: int, connection: socket.socket) -> None:
        """For the handler: a client has connected."""
        with self._lock:
            self._sockets[number] = connection
        if self._over.is_set():
            _shut(connection)

    def closed(self, number: int) -> None:
        """For the handler: it has gone."""
        with self._lock:
            self._sockets.pop(number, None)

    def wait(self, until: float | threading.Event | None) -> None:
        """For the handler: a wait, for ever if None, that does not outlast the proxy."""
        if isinstance(until, threading.Event):
            while not (self._over.is_set() or until.wait(0.01)):
                pass
        else:
            self._over.wait(until)

    def forward(self, seen: Seen) -> tuple[int, list[tuple[str, str]], bytes]:
        """For the handler: the real server's answer."""
        server = http.client.HTTPConnection(*self._target, timeout=FORWARD_TIMEOUT_S)
        try:
            headers = {
                name: value for name, value in seen.headers.items() if name not in _HOP_BY_HOP
            }
            has_body = seen.body or seen.method in ("POST", "PUT", "PATCH")
            seen.forwarded = True
            server.request(seen.method, seen.path, seen.body if has_body else None, headers)
            answer = server.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            server.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # all of them have ended when the proxy has
    request_queue_size = 128

    def shutdown_request(self, request: Any) -> None:
        # A shutdown would say goodbye first, and a reset is to come out of the blue.
        if struct.unpack("ii", request.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))[0]:
            self.close_request(request)
        else:
            super().shutdown_request(request)


def _handler(proxy: FaultProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # status, headers and body leave as one

        def setup(self) -> None:
            super().setup()
            proxy.opened(id(self), self.connection)

        def finish(self) -> None:
            proxy.closed(id(self))
            with suppress(OSError):  # it may have been reset
                super().finish()

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:
                self.close_connection = True  # the client has gone

        def log_message(self, format: str, *args: object) -> None:
            pass

        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):
                return self._do
            raise AttributeError(name)

        def _do(self) -> None:
            chunked = self.headers.get("Transfer-Encoding", "").lower() == "chunked"
            size = int(self.headers.get("Content-Length", 0))
            head = _read_chunks(self.rfile) if chunked else self.rfile.read(min(size, _HEAD))
            seen = Seen(
                at=time.monotonic(),
                method=self.command,
                path=self.path,
                operation=_found(_OPERATION, head),
                table=_found(_TABLE, head),
                size=len(head) if chunked else size,
                connection=id(self),
                headers={name.lower(): value for name, value in self.headers.items()},
            )
            proxy.note(seen)
            fault = proxy.fault_for(seen, has_body=False)
            if isinstance(fault, Reset):
                if fault.when == "inside":
                    self.rfile.read(max(size // 2 - len(head), 0))
                self._reset()
                return
            seen.body = head if chunked else head + self.rfile.read(size - len(head))
            seen.records = _count(seen.body)
            self._act(seen, proxy.fault_for(seen, has_body=True))

        def _act(self, seen: Seen, fault: Fault | None) -> None:
            match fault:
                case Answer():
                    self._answer(seen, fault.status, list(fault.headers.items()), _bytes(fault))
                    return
                case Reset():
                    self._reset()
                    return
                case Stall():
                    proxy.wait(None)
                    self.close_connection = True
                    return
                case Delay():
                    proxy.wait(fault.wait)
            try:
                status, headers, body = proxy.forward(seen)
            except OSError:  # the real server is down: so is the proxy, to its client
                self._reset()
                return
            match fault:
                case NoAnswer():
                    self.close_connection = True
                    return
                case LateAnswer():
                    proxy.wait(fault.wait)
            self._answer(seen, status, headers, body, cut=isinstance(fault, CutAnswer))

        def _answer(
            self,
            seen: Seen,
            status: int,
            headers: list[tuple[str, str]],
            body: bytes,
            *,
            cut: bool = False,
        ) -> None:
            seen.status = status
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body[: len(body) // 2] if cut else body)
            self.wfile.flush()
            self.close_connection = self.close_connection or cut

        def _reset(self) -> None:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True

    return Handler


def _found(pattern: re.Pattern[bytes], head: bytes) -> str | None:
    match = pattern.search(head)
    return match[1].decode("utf-8") if match else None


def _count(body: bytes) -> int | None:
    try:
        request = json.loads(body)
    except ValueError:
        return None
    rows = request.get("records", request.get("ids")) if isinstance(request, dict) else None
    return len(rows) if isinstance(rows, list) else None


def _bytes(answer: Answer) -> bytes:
    if isinstance(answer.body, bytes):
        return answer.body
    text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
    return text.encode("utf-8")


def _read_chunks(stream: Any) -> bytes:
    parts = []
    while size := int(stream.readline().split(b";")[0], 16):
        parts.append(stream.read(size))
        stream.readline()
    while stream.readline().strip():
        pass
    return b"".join(parts)


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
