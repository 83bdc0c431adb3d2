"""What can happen to the servers, the connections and the ledger while a run is at work."""

import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bq_harper_assets.local.stack import LocalStack
from bq_harper_assets_tests.fault_proxy import (
    Answer,
    CutAnswer,
    Delay,
    Fault,
    FaultProxy,
    LateAnswer,
    NoAnswer,
    Reset,
)

BUSY = Answer(503, {"error": "Outstanding write transactions have too long of queue"})
SLOWER = Answer(429, {"error": "too many requests"}, {"Retry-After": "1"})
BIGQUERY_BUSY = Answer(503, {"error": {"code": 503, "message": "busy", "errors": []}})


@dataclass(frozen=True, kw_only=True)
class World:
    """Servers of its own, which may be killed, and proxies before them."""

    stack: LocalStack
    harper: FaultProxy
    bigquery: FaultProxy
    ledger: Path
    pause_s: float  # for which a server is stopped, or the ledger locked
    table: str = ""  # of Harper, that the run writes

    def spoil(self, proxy: FaultProxy, fault: Fault, every: int, times: int) -> None:
        """Each request of such a number meets it."""
        numbers = iter(range(10**9))
        proxy.on(fault, matching=lambda seen: next(numbers) % every == every - 1, times=times)

    def process(self, name: str) -> int:
        """The id of a server's process."""
        (pid,) = (server.pid for server in self.stack.status().servers if server.name == name)
        assert pid is not None
        return pid

    def kill(self, name: str) -> None:
        """And start it again."""
        pid = self.process(name)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)  # a zombie would still count as running
        self.stack.up(print)

    def stop_for_a_while(self, name: str) -> None:
        """It neither answers nor refuses."""
        pid = self.process(name)
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(self.pause_s)
        finally:
            os.kill(pid, signal.SIGCONT)

    def lock_the_ledger(self) -> None:
        """As a backup does that takes too long."""
        with _locked(self.ledger):
            time.sleep(self.pause_s)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    connection = sqlite3.connect(file, timeout=30, isolation_level=None)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")
    finally:
        connection.close()


# Those in front are played in the short form too.
DISASTERS: dict[str, Callable[[World], None]] = {
    "a storm of 503": lambda w: w.harper.on(BUSY, operation="upsert", table=w.table, times=30),
    "answers that are lost": lambda w: w.spoil(w.harper, NoAnswer(), 5, 6),
    "Harper is killed": lambda w: w.kill("harper"),
    "a storm of 429": lambda w: w.harper.on(SLOWER, operation="upsert", table=w.table, times=12),
    "a storm of 503 on all that is asked": lambda w: w.harper.on(BUSY, times=30),
    "resets before a request": lambda w: w.spoil(w.harper, Reset("before"), 4, 8),
    "resets inside a request": lambda w: w.spoil(w.harper, Reset("inside"), 4, 8),
    "resets after a request": lambda w: w.spoil(w.harper, Reset("after"), 4, 8),
    "answers that are cut": lambda w: w.spoil(w.harper, CutAnswer(), 5, 6),
    "answers that are late": lambda w: w.spoil(w.harper, LateAnswer(3.0), 5, 6),
    "requests that are late": lambda w: w.spoil(w.harper, Delay(3.0), 5, 6),
    "Harper is stopped for a while": lambda w: w.stop_for_a_while("harper"),
    "the emulator is stopped for a while": lambda w: w.stop_for_a_while("bigquery"),
    "the ledger is locked for a while": World.lock_the_ledger,
    "BigQuery is busy": lambda w: w.bigquery.on(BIGQUERY_BUSY, times=8),
    "BigQuery's answers are cut": lambda w: w.spoil(w.bigquery, CutAnswer(), 3, 5),
    "BigQuery's answers are lost": lambda w: w.spoil(w.bigquery, NoAnswer(), 3, 5),
    "the emulator is killed": lambda w: w.kill("bigquery"),
}
