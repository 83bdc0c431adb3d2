"""Says what the stack asks of each of its servers, and watches a server while it starts."""

import http.client
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from bq_harper_assets.local.errors import StackError
from bq_harper_assets.local.ports import LOOPBACK
from bq_harper_assets.local.processes import Process, is_running

READY_WITHIN_SECONDS = 180.0
_ASKING_SECONDS = 5.0
LAST_LINES = 12
# A server needs these of the user's environment. The rest could change its settings or be secret.
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")

Start = Callable[[Sequence[str], Mapping[str, str]], Process]


class Server(Protocol):
    """A server is one program of the stack."""

    name: str
    title: str

    def boot(self, start: Start) -> Iterator[None]:
        """Starts it and waits until it is ready; it yields at each check: several can start."""

    def answers(self) -> bool:
        """Says whether this stack's own server answers, and is ready."""


def child_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the part of the user's environment that a server may see."""
    return {name: environ[name] for name in PASSED_ON if name in environ}


def wait_until_ready(server: Server, process: Process, log: Path, log_start: int) -> Iterator[None]:
    """Waits; raises StackError with the server's last words if it ends or is not ready in time."""
    deadline = time.monotonic() + READY_WITHIN_SECONDS
    while not server.answers():
        if not is_running(process):
            raise StackError(
                f"{server.title} ended while it was starting. {last_words(log, log_start)}"
            )
        if time.monotonic() > deadline:
            raise StackError(
                f"{server.title} is not ready after {READY_WITHIN_SECONDS:.0f} seconds. "
                f"{last_words(log, log_start)}"
            )
        yield


def last_words(log: Path, log_start: int) -> str:
    """Says what to do next, and quotes the last lines since `log_start`, without colours."""
    text = written_since(log, log_start)
    lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()]
    words = [f"  | {line}" for line in lines if re.search(r"\w", line)][-LAST_LINES:]
    return "\n".join(
        [f"Data is safe. Its log is {log}. Next, with the cause removed: bqh up", *words]
    )


def log_size(log: Path) -> int:
    """Returns where the next line of the log will begin."""
    return log.stat().st_size if log.exists() else 0


def written_since(log: Path, start: int) -> str:
    """Returns the text that the log got after it had `start` bytes."""
    with log.open("rb") as file:
        file.seek(start, os.SEEK_SET)
        return file.read().decode("utf-8", errors="replace")


def http_status(
    port: int, method: str, path: str, body: str = "", headers: Mapping[str, str] | None = None
) -> int | None:
    """Returns the status of one request to loopback, past any proxy; None if nobody answers."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=_ASKING_SECONDS)
    try:
        connection.request(method, path, body or None, dict(headers or {}))
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
