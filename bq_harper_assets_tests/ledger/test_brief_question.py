"""A question to the ledger that makes and changes nothing, and that nobody has to wait for."""

import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from bq_harper_assets.ledger.brief_question import ask_briefly
from bq_harper_assets.ledger.errors import LedgerError, LedgerRefused, LedgerUnavailable
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.store.database import Database

START = datetime(2026, 1, 5, tzinfo=UTC)
WITHIN_S = 2.0
SLACK_S = 1.5  # of a machine that does something else besides


@pytest.fixture
def silent_server() -> Iterator[str]:
    """A PostgreSQL address that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"postgresql://bqh:secret@127.0.0.1:{server.getsockname()[1]}/ledger"


def test_it_answers_what_the_ledger_has_on_record(ledger: Ledger, ledger_url: str) -> None:
    ledger.record_start("orders", START)
    asked = ask_briefly(SecretStr(ledger_url), Ledger.starts, WITHIN_S)
    assert asked == {"orders": START}


def test_it_cannot_write(ledger: Ledger, ledger_url: str) -> None:
    def write(opened: Ledger) -> datetime:
        return opened.record_start("orders", START)

    with pytest.raises(LedgerRefused, match="opened only to be read"):
        ask_briefly(SecretStr(ledger_url), write, WITHIN_S)

    def write_by_hand(opened: Ledger) -> None:
        with opened._database.reading() as connection:
            connection.execute(text("DELETE FROM starts"))

    ledger.record_start("orders", START)
    with pytest.raises(LedgerError):
        ask_briefly(SecretStr(ledger_url), write_by_hand, WITHIN_S)
    assert ledger.start_of("orders") == START


def test_a_database_that_is_no_ledger_yet_stays_as_it_is(unused_url: str, backend: str) -> None:
    if backend == "sqlite":
        assert ask_briefly(SecretStr(unused_url), Ledger.starts, WITHIN_S) is None
        assert not list(Path(unused_url.removeprefix("sqlite:///")).parent.iterdir())
        return
    with pytest.raises(LedgerError):
        ask_briefly(SecretStr(unused_url), Ledger.starts, WITHIN_S)
    with closing(Database(SecretStr(unused_url))) as database, database.reading() as connection:
        made = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        assert connection.execute(text(made)).scalar_one() == 0


def test_a_ledger_of_an_older_layout_is_not_migrated_and_does_not_answer(tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    with closing(sqlite3.connect(file)) as old:
        old.execute("CREATE TABLE something_else (id INTEGER)")
    before = file.read_bytes()
    with pytest.raises(LedgerError, match="no such table"):
        ask_briefly(SecretStr(f"sqlite:///{file}"), Ledger.starts, WITHIN_S)
    assert file.read_bytes() == before


def test_a_file_in_a_folder_with_odd_characters_is_found(tmp_path: Path) -> None:
    file = tmp_path / "100% é #1" / "ledger.db"
    file.parent.mkdir()
    with closing(sqlite3.connect(file)) as made:
        made.execute("CREATE TABLE starts (name TEXT, start INTEGER)")
    assert ask_briefly(SecretStr(f"sqlite:///{file}"), _starts_by_hand, WITHIN_S) == 0


def _starts_by_hand(ledger: Ledger) -> int:
    with ledger._database.reading() as connection:
        return int(connection.execute(text("SELECT count(*) FROM starts")).scalar_one())


@pytest.mark.parametrize("is_silent", [True, False], ids=["silent", "nobody listens"])
def test_a_server_that_is_away_is_waited_for_only_so_long(
    is_silent: bool, silent_server: str, nowhere: str
) -> None:
    url = silent_server if is_silent else nowhere.replace("http://", "postgresql://bqh:secret@")
    began = time.monotonic()
    with pytest.raises(LedgerUnavailable) as refused:
        ask_briefly(SecretStr(url), Ledger.starts, WITHIN_S)
    assert time.monotonic() - began < WITHIN_S + SLACK_S
    assert "secret" not in str(refused.value)


def test_a_file_that_somebody_has_locked_is_waited_for_only_so_long(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("CREATE TABLE starts (name TEXT, start INTEGER)")
        other.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()
        with pytest.raises(LedgerUnavailable):
            ask_briefly(SecretStr(f"sqlite:///{file}"), Ledger.starts, WITHIN_S)
        assert time.monotonic() - began < WITHIN_S + SLACK_S


def test_each_statement_to_a_server_is_given_the_time_of_the_question(
    shared_postgres_url: str,
) -> None:
    def limits(ledger: Ledger) -> list[str]:
        with ledger._database.reading() as connection:
            names = ("statement_timeout", "lock_timeout")
            return [str(connection.execute(text(f"SHOW {n}")).scalar_one()) for n in names]

    assert ask_briefly(SecretStr(shared_postgres_url), limits, 2.5) == ["2500ms", "2500ms"]
