"""The ledger on both databases: a test that asks for `ledger` runs once on each."""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.ledger.store.columns import duration_micros
from bq_harper_assets.ledger.store.database import Database
from bq_harper_assets.ledger.store.tables import IDENTITY, METADATA
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.ledger.postgres_server import NoPostgres, PostgresServer
from bq_harper_assets_tests.ledger.sample import FACTS

PROCESSES = 4


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """Started once per run."""
    try:
        server = PostgresServer()
    except NoPostgres as reason:
        print(f"no PostgreSQL: {reason}")
        pytest.skip(f"no PostgreSQL: {reason}")
    yield server
    server.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def backend(request: pytest.FixtureRequest) -> str:
    """Which database."""
    name: str = request.param
    return name


@pytest.fixture
def unused_url(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that was never opened as a ledger."""
    if backend == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.create_database(f"ledger_{uuid4().hex}")


@pytest.fixture(scope="session")
def shared_postgres_url(postgres_server: PostgresServer) -> str:
    """One ledger for many tests: making a database for each takes longer than the tests."""
    url = postgres_server.create_database("shared")
    open_ledger(url).close()
    return url


@pytest.fixture
def ledger_url(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A ledger without tables."""
    if backend == "sqlite":
        return empty_ledger(tmp_path / "ledger.db")
    url: str = request.getfixturevalue("shared_postgres_url")
    server: PostgresServer = request.getfixturevalue("postgres_server")
    rows = [made for made in reversed(METADATA.sorted_tables) if made is not IDENTITY]
    server.run("shared", "; ".join(f"DELETE FROM {made.name}" for made in rows))
    return url


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    """Opened on that database."""
    with open_ledger(ledger_url) as opened:
        yield opened


@pytest.fixture
def table(ledger: Ledger) -> LedgerRoute:
    """Registered, with schema version 1."""
    registered = ledger.register_route(FACTS)
    ledger.record_schema(registered, {"columns": ["ts"]}, 0)
    return registered


@pytest.fixture
def let_time_pass(ledger_url: str, ledger: Ledger) -> Iterator[Callable[[timedelta], None]]:
    """As if the database's clock had gone on: leases and claims expire that much sooner."""
    database = Database(SecretStr(ledger_url))

    def shift(duration: timedelta) -> None:
        with database.writing() as connection:
            for held in ("leases", "claims"):
                sooner = text(f"UPDATE {held} SET expires_at = expires_at - :us")
                connection.execute(sooner, {"us": duration_micros(duration)})

    yield shift
    database.close()


@pytest.fixture(scope="session")
def processes() -> Iterator[ProcessPoolExecutor]:
    """Other processes, spawned: they share nothing with the test but the database."""
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        yield pool
