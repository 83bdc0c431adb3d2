"""Opens connections and transactions, and makes SQLite and PostgreSQL behave alike."""

import errno
import sqlite3
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, make_url
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from bq_harper_assets.contract.secrets import without_secrets
from bq_harper_assets.contract.settings.private_files import make_private_file, tighten_file
from bq_harper_assets.ledger.errors import LedgerNotWritable, LedgerRefused, LedgerUnavailable
from bq_harper_assets.retries.waiting import WAITS, clock_text

_NOT_WRITABLE = (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EPERM)
_PG_DISK_FULL, _PG_READ_ONLY = "53100", "25006"
_PATIENCE_S = 30  # how long a step waits for the locks of others before it gives up


class Database:
    """A database runs transactions, and turns the driver's errors into the ledger's own."""

    def __init__(self, url: SecretStr) -> None:
        parsed = _parse(url.get_secret_value())
        self.address = without_secrets(parsed.render_as_string(hide_password=True))
        is_file = parsed.get_backend_name() == "sqlite"
        self.file = Path(str(parsed.database)) if is_file else None
        self._engine = self._make_engine(parsed)
        self._writer = self._engine.execution_options(writes=True)

    def _make_engine(self, url: URL) -> Engine:
        if url.get_backend_name() == "sqlite":
            return _sqlite_engine(url, self.address)
        return _postgresql_engine(url, self.address)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Opens a read transaction; each statement sees what was committed before it."""
        with self._translated(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Opens a write transaction, which commits whole, or not at all if the block raises."""
        with self._translated(), self._writer.begin() as connection:
            yield connection

    def close(self) -> None:
        """Closes all connections."""
        self._engine.dispose()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            # Only the first line is shown, because PostgreSQL's further lines may quote the row.
            why = without_secrets(str(error.orig)).strip().partition("\n")[0]
            if (is_full := _is_full(error.orig)) is not None:
                raise LedgerNotWritable(self.address, why, is_full=is_full) from error
            if isinstance(error, OperationalError) or error.connection_invalidated:
                raise LedgerUnavailable(self.address, why) from error
            raise LedgerRefused(
                f"the ledger at {self.address} refused a statement: {why}. The whole step was taken"
                " back. Check the rights of the ledger's user, then type: bqh doctor"
            ) from error


def _is_full(error: BaseException | None) -> bool | None:
    """Says whether the disk is full (True) or not writable (False); None for other errors."""
    state = getattr(error, "pgcode", None)
    exact = getattr(error, "sqlite_errorcode", 0)
    code = exact & 0xFF  # the higher bits say more than we need
    # Whoever opens the file first, even to read it, makes a second file, which needs room too.
    has_no_room = code == sqlite3.SQLITE_FULL or exact == sqlite3.SQLITE_IOERR_SHMSIZE
    if has_no_room or state == _PG_DISK_FULL:
        return True
    closed = code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
    return False if closed or state == _PG_READ_ONLY else None


def insert_if_absent(connection: Connection, table: Table, **values: Any) -> bool:
    """Inserts the row; False if a unique column has one of these values already."""
    statement = insert_into(connection, table).values(**values).on_conflict_do_nothing()
    return connection.execute(statement).rowcount == 1


def insert_into(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """Makes an insert that can say what to do with rows that are there already."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)


def _parse(text: str) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise _bad_url() from None  # the parser's own message may quote the password
    if url.get_backend_name() == "sqlite":
        if not url.database or url.database == ":memory:":
            raise _bad_url()
        return url
    if url.get_backend_name() != "postgresql":
        raise _bad_url()
    if url.drivername == "postgresql":
        url = url.set(
            drivername="postgresql+psycopg2"
        )  # what we install; SQLAlchemy's choice varies
    if password := url.query.get("password"):
        # SQLAlchemy hides a password only here.
        url = url.set(password=str(password)).difference_update_query(["password"])
    return url


def _bad_url() -> LedgerRefused:
    return LedgerRefused(
        "ledger.url is not the address of a ledger; nothing was opened. Set it in the profile to"
        " sqlite:///path/to/file.db or postgresql://user@host/database, then type: bqh doctor"
    )


def _sqlite_engine(url: URL, address: str) -> Engine:
    try:
        _make_private(Path(str(url.database)))
    except OSError as error:
        if error.errno in _NOT_WRITABLE:
            is_full = error.errno == errno.ENOSPC
            raise LedgerNotWritable(address, str(error), is_full=is_full) from error
        raise LedgerUnavailable(address, str(error)) from error
    engine = create_engine(
        url, hide_parameters=True, connect_args={"timeout": _PATIENCE_S, "isolation_level": None}
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, record: object) -> None:
        with _told(address):
            _enter_wal(connection)
        # If a power cut undid a plan, the next turn would copy over rows that it does not know of.
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if not connection.get_execution_options().get("writes", False):
            connection.exec_driver_sql("BEGIN")
            return
        # If a writer began by reading, SQLite would not let it wait but fail its first write.
        with _told(address):
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _told(address: str) -> AbstractContextManager[None]:
    """Reports that the block waits for the lock of another process."""
    ends = f"gives up at {clock_text(_PATIENCE_S)}"
    return WAITS.waiting(f"the lock of the ledger at {address}, which another process holds", ends)


def _make_private(file: Path) -> None:
    """Makes the file private, because it holds rejected rows.

    SQLite gives the files beside it the mode of the first.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    make_private_file(file)
    for ending in ("-wal", "-shm"):
        tighten_file(file.with_name(file.name + ending))


def _enter_wal(connection: sqlite3.Connection) -> None:
    """Lets readers go on beside a writer; tries again, as SQLite may refuse without waiting."""
    give_up = time.monotonic() + _PATIENCE_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.02)


def _postgresql_engine(url: URL, address: str) -> Engine:
    engine = create_engine(
        url,
        hide_parameters=True,
        pool_pre_ping=True,
        # A step that waited for a lock must see what the other step committed.
        isolation_level="READ COMMITTED",
        connect_args={"connect_timeout": 10},
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = '{_PATIENCE_S}s'")
            # A client that froze in mid-step must not block the others for ever.
            cursor.execute(f"SET idle_in_transaction_session_timeout = '{2 * _PATIENCE_S}s'")
        connection.commit()

    @event.listens_for(engine, "do_execute")
    def _execute(cursor: Any, statement: str, parameters: Any, context: object) -> bool:
        what = f"the ledger at {address} to answer"
        with WAITS.waiting(what, f"gives up at {clock_text(_PATIENCE_S)} if others hold its locks"):
            cursor.execute(statement, parameters)
        return True  # tells SQLAlchemy that the statement has run

    return engine
