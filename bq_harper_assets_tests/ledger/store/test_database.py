"""The ledger as a database: made and migrated by itself, and silent about passwords."""

import re
import sqlite3
import threading
import time
import traceback
from datetime import timedelta
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from pydantic import SecretStr
from sqlalchemy import CheckConstraint, create_engine, inspect, text, update

from bq_harper_assets.ledger.errors import (
    LeaseLost,
    LedgerError,
    LedgerRefused,
    LedgerTooNew,
    LedgerUnavailable,
)
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.ledger.store.columns import database_now
from bq_harper_assets.ledger.store.database import Database
from bq_harper_assets.ledger.store.tables import LEASES, METADATA
from bq_harper_assets.retries.waiting import WAITS
from bq_harper_assets_tests.ledger.postgres_server import PASSWORD, PostgresServer
from bq_harper_assets_tests.ledger.sample import (
    FACTS,
    TTL,
    T,
    cell,
    commit_cell,
    copy,
    result,
)


def test_the_migrations_make_the_tables_that_the_code_uses(unused_url: str) -> None:
    open_ledger(unused_url).close()
    database = Database(SecretStr(unused_url))
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []
        found = inspect(connection)
        for made in METADATA.sorted_tables:
            columns = {
                column["name"]: column["nullable"] for column in found.get_columns(made.name)
            }
            assert columns == {column.name: column.nullable for column in made.columns}
            checks = {check["name"] for check in found.get_check_constraints(made.name)}
            assert checks == {
                str(check.name) for check in made.constraints if isinstance(check, CheckConstraint)
            }
    database.close()


def test_a_ledger_opened_again_is_the_same_ledger(unused_url: str) -> None:
    with open_ledger(unused_url) as first:
        identity = first.identity()
    with open_ledger(SecretStr(unused_url)) as second:
        assert second.identity() == identity


def test_a_ledger_of_a_newer_release_is_left_alone(unused_url: str) -> None:
    open_ledger(unused_url).close()
    database = Database(SecretStr(unused_url))
    with database.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'v9999'"))
    database.close()
    with pytest.raises(LedgerTooNew, match="v9999, which this release does not know"):
        open_ledger(unused_url)


def test_a_ledger_of_a_newer_release_says_which_release_is_needed(unused_url: str) -> None:
    open_ledger(unused_url).close()
    database = Database(SecretStr(unused_url))
    with database.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'v9999'"))
        connection.execute(text("UPDATE ledger_identity SET release = '7.3.0'"))
    with pytest.raises(LedgerTooNew, match=r"Run release 7\.3\.0 or a newer one"):
        open_ledger(unused_url)
    with database.writing() as connection:  # a layout that does not even say so
        connection.execute(text("ALTER TABLE ledger_identity DROP COLUMN release"))
    database.close()
    with pytest.raises(LedgerTooNew, match="Run a newer release"):
        open_ledger(unused_url)


def test_the_clock_is_the_databases_to_the_millisecond(ledger: Ledger) -> None:
    readings = []
    for _ in range(20):
        before = time.time()
        readings.append((before, ledger.now().timestamp(), time.time()))
        time.sleep(0.003)
    assert all(before - 0.002 <= now <= after + 0.002 for before, now, after in readings)
    assert len({now for _, now, _ in readings}) == 20


def test_a_writer_waits_for_another_and_a_reader_does_not(
    ledger_url: str, ledger: Ledger, table: LedgerRoute
) -> None:
    other = Database(SecretStr(ledger_url))
    locked, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with other.writing() as connection:
            connection.execute(text("UPDATE leases SET owner = 'holder', expires_at = 0"))
            locked.set()
            go_on.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    assert locked.wait(20)
    assert ledger.leases(table)[0].owner is None
    threading.Timer(0.3, go_on.set).start()
    sent = time.monotonic()
    ledger.acquire(table, [0], "ann", timedelta(seconds=60))
    assert time.monotonic() - sent > 0.25
    holder.join()
    other.close()
    assert ledger.audit(table)[0].detail["taken_from"] == "holder"


def test_a_lease_that_ends_while_a_commit_waits_for_a_lock_is_lost(
    ledger_url: str, ledger: Ledger, table: LedgerRoute
) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    (batch,) = ledger.plan(leases, T, 1, [copy(cell())], "run-1")
    other = Database(SecretStr(ledger_url))
    locked = threading.Event()

    def hold_beyond_expiry() -> None:
        with other.writing() as connection:
            soon = database_now(connection) + timedelta(seconds=0.5)
            connection.execute(update(LEASES).values(expires_at=soon))
            locked.set()
            time.sleep(1)

    holder = threading.Thread(target=hold_beyond_expiry)
    holder.start()
    assert locked.wait(20)
    with pytest.raises(LeaseLost):
        commit_cell(ledger, leases, batch, result())
    holder.join()
    other.close()


@pytest.mark.parametrize(
    "url",
    [
        "mysql://user:hunter2@host/db",
        "postgresql://user:hunter2@host:port/db",
        "hunter2",
        "sqlite://",
        "sqlite:///:memory:",
    ],
)
def test_an_address_that_is_no_ledger_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(LedgerRefused) as refusal:
        open_ledger(url)
    assert "sqlite:///path/to/file.db" in str(refusal.value)
    assert "hunter2" not in "".join(traceback.format_exception(refusal.value))


def test_a_password_is_in_no_message_and_no_repr(postgres_server: PostgresServer) -> None:
    address = f"127.0.0.1:{postgres_server.port}"
    good = postgres_server.create_database("secrets")
    elsewhere = f"postgresql://bqh@{address}/secrets?password={PASSWORD}"
    for url in (good, elsewhere):
        with open_ledger(url) as ledger:
            assert repr(ledger) == f"Ledger(postgresql+psycopg2://***@{address}/secrets)"
            assert PASSWORD not in str(vars(ledger._database))
    for url in (
        f"postgresql://nobody:{PASSWORD}@{address}/secrets",
        f"postgresql://bqh:{PASSWORD}@{address}/missing",
        f"postgresql://bqh:{PASSWORD}@127.0.0.1:1/secrets",
        f"postgresql://bqh@127.0.0.1:1/secrets?password={PASSWORD}",
    ):
        with pytest.raises(LedgerUnavailable) as refusal:
            open_ledger(url)
        assert "bqh doctor" in str(refusal.value)
        assert PASSWORD not in "".join(traceback.format_exception(refusal.value))


def test_rows_are_in_no_message(ledger: Ledger, ledger_url: str) -> None:
    database = Database(SecretStr(ledger_url))
    with pytest.raises(LedgerError) as refusal, database.writing() as connection:
        connection.execute(text("INSERT INTO nowhere\nVALUES (:payload)"), {"payload": "canary"})
    database.close()
    assert "nowhere" in str(refusal.value)
    assert "canary" not in str(refusal.value) + str(refusal.value.__cause__)


def test_a_file_that_cannot_be_a_ledger_says_so(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("text", encoding="ascii")
    with pytest.raises(LedgerUnavailable, match="taken"):
        open_ledger(f"sqlite:///{tmp_path}/taken/ledger.db")
    (tmp_path / "text.db").write_text("this is no database, but it is long enough" * 30)
    with pytest.raises(LedgerRefused, match="file is not a database"):
        open_ledger(f"sqlite:///{tmp_path}/text.db")


def test_a_new_sqlite_file_that_another_is_writing_is_waited_for(tmp_path: Path) -> None:
    writer = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None, check_same_thread=False)
    writer.execute("CREATE TABLE other (number)")
    writer.execute("BEGIN IMMEDIATE")  # SQLite refuses to enter WAL mode meanwhile, without waiting
    threading.Timer(0.3, writer.execute, ["COMMIT"]).start()
    open_ledger(f"sqlite:///{tmp_path}/ledger.db").close()
    writer.close()


def test_a_sqlite_ledger_makes_its_folder_and_survives_power_cuts(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new/folder/ledger.db"
    open_ledger(url).close()
    with sqlite3.connect(tmp_path / "new/folder/ledger.db") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    database = Database(SecretStr(url))
    with database.reading() as reading:
        assert reading.execute(text("PRAGMA synchronous")).scalar_one() == 2
        assert reading.execute(text("PRAGMA foreign_keys")).scalar_one() == 1
    database.close()


def test_a_server_that_restarts_between_two_steps_is_survived(
    ledger: Ledger, ledger_url: str, backend: str
) -> None:
    if backend == "sqlite":
        pytest.skip("a file has no server that could restart")
    ledger.now()
    killer = create_engine(ledger_url.replace("postgresql:", "postgresql+psycopg2:"))
    with killer.begin() as connection:
        others = "pid <> pg_backend_pid() AND datname = current_database()"
        connection.execute(
            text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
        )
    killer.dispose()
    ledger.register_route(FACTS)


def test_the_files_of_a_ledger_are_its_owners_alone_also_those_that_were_not(
    tmp_path: Path,
) -> None:
    file = tmp_path / "new" / "ledger.db"
    for _ in range(2):
        with open_ledger(f"sqlite:///{file}") as ledger:
            ledger.register_route(FACTS)
            modes = {each.name: each.stat().st_mode & 0o777 for each in file.parent.iterdir()}
        assert modes == {"ledger.db": 0o600, "ledger.db-wal": 0o600, "ledger.db-shm": 0o600}
        file.chmod(0o644)  # as an earlier release has left it


def test_a_lock_that_another_process_holds_is_told(unused_url: str) -> None:
    open_ledger(unused_url).close()
    ours, others = (Database(SecretStr(unused_url)) for _ in range(2))
    held, told, said = threading.Event(), threading.Event(), list[str]()

    def hold() -> None:
        with others.writing() as connection:
            connection.execute(update(LEASES).values(epoch=LEASES.c.epoch))
            if connection.dialect.name == "postgresql":
                connection.execute(text(f"LOCK TABLE {LEASES.name}"))
            held.set()
            told.wait(20)

    def say(line: str) -> None:
        said.append(line)
        told.set()

    holding = threading.Thread(target=hold)
    holding.start()
    assert held.wait(20)
    with WAITS.listen(say), ours.writing() as connection:
        connection.execute(update(LEASES).values(epoch=LEASES.c.epoch))
    holding.join()
    [line] = said
    assert re.match(
        r"waits for (the lock of )?the ledger at (sqlite|postgresql)\S+,?"
        r" (which another process holds|to answer), since [\d:]{8} UTC; gives up at [\d:]{8} UTC",
        line,
    )
    for each in (ours, others):
        each.close()
