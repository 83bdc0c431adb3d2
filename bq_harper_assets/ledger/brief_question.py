"""Asks the ledger something for someone who cannot wait, and who can do without the answer."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from pydantic import SecretStr
from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event

from bq_harper_assets.ledger.errors import LedgerRefused, LedgerUnavailable
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.store.database import Database

_Answer = TypeVar("_Answer")


def ask_briefly(
    url: SecretStr, question: Callable[[Ledger], _Answer], within_s: float
) -> _Answer | None:
    """Gives the answer, or None if no ledger was made there yet; nothing is made or migrated.

    A ledger that does not answer in time, or whose layout lacks what is asked, raises LedgerError.
    """
    database = ReadOnlyDatabase(url, within_s)
    if not database.is_there:
        return None
    answers: list[_Answer] = []
    errors: list[Exception] = []

    def ask() -> None:
        try:
            answers.append(question(Ledger(database, time.monotonic)))
        except Exception as error:  # told to whoever asks, if that one still waits
            errors.append(error)
        finally:
            database.close()

    # No driver limits all of it: the look-up of a name, each address, a server that is frozen.
    asking = threading.Thread(target=ask, name="brief question to the ledger", daemon=True)
    asking.start()
    asking.join(within_s)
    if errors:
        raise errors[0]
    if not answers:
        raise LedgerUnavailable(database.address, f"it has not answered within {within_s:g} s")
    return answers[0]


class ReadOnlyDatabase(Database):
    """Reads one database as it is, of whatever layout: it makes no file and changes nothing.

    A step fails after `patience_s`.
    """

    def __init__(self, url: SecretStr, patience_s: float) -> None:
        self._patience_s = patience_s
        super().__init__(url)

    @property
    def is_there(self) -> bool:
        """Says whether there can be a ledger: a SQLite file that was never made holds none."""
        return self.file is None or self.file.exists()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Refuses: whoever wants to write opens the ledger with `open_ledger`."""
        raise LedgerRefused(f"the ledger at {self.address} was opened only to be read")
        yield

    def _make_engine(self, url: URL) -> Engine:
        if url.get_backend_name() == "sqlite":
            return self._sqlite_engine(Path(str(url.database)))
        return self._postgresql_engine(url)

    def _sqlite_engine(self, file: Path) -> Engine:
        # SQLite itself then refuses to make the file, and every statement that writes. SQLAlchemy's
        # own URL would be unquoted once more, so that a "#" in it ended the path.
        only_read = f"file:{quote(str(file.absolute()))}?mode=ro"

        def connect() -> sqlite3.Connection:
            return sqlite3.connect(only_read, timeout=self._patience_s, uri=True)

        return create_engine("sqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)

    def _postgresql_engine(self, url: URL) -> Engine:
        engine = create_engine(
            url,
            hide_parameters=True,
            connect_args={"connect_timeout": max(1, int(self._patience_s))},
        ).execution_options(postgresql_readonly=True)
        milliseconds = int(1000 * self._patience_s)

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            # For this transaction alone: a pooler may hand the session on to somebody who writes.
            for limit in ("statement_timeout", "lock_timeout"):
                connection.exec_driver_sql(f"SET LOCAL {limit} = {milliseconds}")

        return engine
