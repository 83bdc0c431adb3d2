"""One clock for all parties of a history: it stands still until the history moves it."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine, event

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_S = 86_400
_JULIAN_1970 = 2_440_587.5
_LONGEST_REAL_WAIT_S = 60.0


class Clock:
    """The time of BigQuery, of the ledger's database, and of every run."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def move(self, seconds: float) -> None:
        """In whole milliseconds: the ledger's database counts no finer."""
        self.now += timedelta(milliseconds=round(seconds * 1000))

    def seconds(self) -> float:
        """In the place of time.time and of time.monotonic."""
        return (self.now - _EPOCH).total_seconds()

    @contextmanager
    def in_databases(self) -> Iterator[None]:
        """SQLite connections that are made meanwhile read this clock."""

        def julian_day(moment: str) -> float:
            assert moment == "now"
            return self.seconds() / _DAY_S + _JULIAN_1970

        def replace(connection: sqlite3.Connection, record: Any) -> None:
            connection.create_function("julianday", 1, julian_day)

        event.listen(Engine, "connect", replace)
        try:
            yield
        finally:
            event.remove(Engine, "connect", replace)


class Beats:
    """In the place of the event that ends a keeper: its waits last until a beat is asked for."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._asked = False
        self._waiting = False
        self._ended = False

    def wait(self, timeout: float) -> bool:
        """For the keeper's thread: True once it has ended."""
        with self._changed:
            self._waiting = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._asked or self._ended)
            self._asked = self._waiting = False
            return self._ended

    def set(self) -> None:
        """The block has ended."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def beat(self) -> None:
        """One renewal, from its begin to its end."""
        with self._changed:
            self._await_quiet()
            self._asked, self._waiting = True, False
            self._changed.notify_all()
            self._await_quiet()

    def _await_quiet(self) -> None:
        quiet = self._changed.wait_for(
            lambda: (self._waiting and not self._asked) or self._ended, _LONGEST_REAL_WAIT_S
        )
        assert quiet, "a renewal did not end"
