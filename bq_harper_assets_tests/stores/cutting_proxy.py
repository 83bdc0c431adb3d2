"""A TCP proxy that counts what the server sends and cuts connections where it is told to."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

_CHUNK = 16 * 1024


class CuttingProxy:
    """Connection n is cut after `cuts[n]` bytes from the server; later connections never are."""

    def __init__(self, target: str, cuts: Sequence[int]) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._cuts = list(cuts)
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.received = 0
        self.connections = 0
        self._is_closed = False
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._is_closed:
                    client.close()
                    return
                server = socket.create_connection(self._target)
                self._sockets += [client, server]
                limit = self._cuts[self.connections] if self.connections < len(self._cuts) else None
                self.connections += 1
            for pair in ((client, server, None, False), (server, client, limit, True)):
                threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(
        self, source: socket.socket, sink: socket.socket, limit: int | None, is_counted: bool
    ) -> None:
        passed = 0
        try:
            while chunk := source.recv(_CHUNK):
                passed += len(chunk)
                if limit is not None and passed > limit:
                    break
                if is_counted:
                    with self._lock:
                        self.received += len(chunk)
                sink.sendall(chunk)
        except OSError:
            pass  # the other direction was cut
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Ends every connection."""
        with self._lock:
            self._is_closed = True
            for end in self._sockets:
                end.close()
        # Only this wakes the thread that waits in accept().
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join()


@contextmanager
def cutting_proxy(target: str, *cuts: int) -> Iterator[CuttingProxy]:
    """Closed at the end of the block."""
    proxy = CuttingProxy(target, cuts)
    try:
        yield proxy
    finally:
        proxy.close()
