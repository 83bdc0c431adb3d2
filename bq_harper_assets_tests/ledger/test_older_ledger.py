"""A ledger that an older release has written is brought to today's layout and says what it said."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import Boolean, MetaData, insert, inspect, select, text

from bq_harper_assets.ledger.errors import PlanRefused
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.position import InstantPosition
from bq_harper_assets.ledger.records import CellKey, CellState, Mode, Wanted
from bq_harper_assets.ledger.store.database import Database
from bq_harper_assets.ledger.store.tables import METADATA
from bq_harper_assets.sync.schema_sync.drift import last_look
from bq_harper_assets_tests.ledger.store.test_migrate import upgrade
from bq_harper_assets_tests.older_release.fill import PORTS, REPORTS, SHIPS
from bq_harper_assets_tests.older_release.left_data import left_text, write_ledger
from bq_harper_assets_tests.stores.small_tables import utc

DAY = utc(2026, 1, 5)
HOUR = timedelta(hours=1)
Rows = dict[str, list[tuple[Any, ...]]]


@pytest.fixture
def left_url(backend: str, unused_url: str, tmp_path: Path) -> str:
    """A database with what the older release wrote, that today's code has not opened yet."""
    file = tmp_path / ("ledger.db" if backend == "sqlite" else "left.db")
    write_ledger(file, left_text("ledger.sql"))
    if backend == "postgresql":
        _copy(file, unused_url)
    return unused_url


def _copy(file: Path, url: str) -> None:
    """Copies SQLite's rows into the tables that the older release had in PostgreSQL."""
    database, known = Database(SecretStr(url)), MetaData()
    with database.writing() as connection, closing(sqlite3.connect(file)) as left:
        [[revision]] = left.execute("SELECT version_num FROM alembic_version")
        upgrade(connection, revision)
        known.reflect(connection)
        connection.execute(text("DELETE FROM ledger_identity"))
        for made in known.sorted_tables:
            if made.name == "alembic_version":
                continue
            rows = left.execute(f"SELECT {', '.join(made.columns.keys())} FROM {made.name}")
            for row in rows.fetchall():
                columns = zip(made.columns, row, strict=True)
                values = {
                    each.name: bool(value)
                    if isinstance(each.type, Boolean) and value is not None
                    else value
                    for each, value in columns
                }
                connection.execute(insert(made).values(values))
        for name in ("logical_tables", "audit"):
            connection.execute(
                text(f"SELECT setval('{name}_id_seq', (SELECT max(id) FROM {name}))")
            )
    database.close()


def rows_in(url: str) -> Rows:
    """All rows of all tables, but for the note of the layout."""
    database, known = Database(SecretStr(url)), MetaData()
    with database.reading() as connection:
        known.reflect(connection)
        found = {
            made.name: sorted(map(tuple, connection.execute(select(made))), key=repr)
            for made in known.sorted_tables
            if made.name != "alembic_version"
        }
    database.close()
    return found


def columns_in(url: str) -> dict[str, list[str]]:
    """The columns of each table, but for the note of the layout."""
    database = Database(SecretStr(url))
    with database.reading() as connection:
        looked = inspect(connection)
        found = {
            name: sorted(each["name"] for each in looked.get_columns(name))
            for name in looked.get_table_names()
            if name != "alembic_version"
        }
    database.close()
    return found


def test_every_row_is_still_there_in_todays_layout(left_url: str) -> None:
    before = rows_in(left_url)
    open_ledger(left_url).close()
    today = {made.name: sorted(made.columns.keys()) for made in METADATA.sorted_tables}
    assert columns_in(left_url) == today
    after = rows_in(left_url)
    assert {name: len(rows) for name, rows in after.items() if name in before} == {
        name: len(rows) for name, rows in before.items()
    }
    assert before["logical_tables"] != []


def test_what_was_synced_is_told_as_it_was(left_url: str) -> None:
    with open_ledger(left_url) as ledger:
        tables = {table.name: table for table in ledger.routes()}
        assert set(tables) == {SHIPS, REPORTS, PORTS}
        assert {
            name: (table.facts.key, table.facts.window, table.facts.slices)
            for name, table in tables.items()
        } == {
            SHIPS: (("number",), HOUR, 2),
            REPORTS: ((), HOUR, 2),
            PORTS: (("code",), HOUR, 2),
        }
        told = {name: ledger.progress(table, DAY) for name, table in tables.items()}
        assert [each.cells for each in told.values()] == [{CellState.SYNCED: 6}] * 3
        assert {each.synced_until for each in told.values()} == {DAY + 3 * HOUR}
        figures = {name: (each.rows, each.quarantined, each.dirty) for name, each in told.items()}
        # The ship that has moved is counted in its old cell, which is marked for it, and its new.
        assert figures == {SHIPS: (30, 1, 1), REPORTS: (36, 0, 0), PORTS: (12, 0, 0)}
        assert ledger.start_of(REPORTS) == DAY
        newest = {name: each.version for name, each in ledger.newest_versions().items()}
        assert newest == {SHIPS: 1, REPORTS: 1, PORTS: 2}
        for table in tables.values():
            assert [(lease.owner, lease.is_live) for lease in ledger.leases(table)] == [
                (None, False)
            ] * 2
            assert {each.state.value for each in ledger.history(table)} == {"applied"}
        [refused] = ledger.quarantined(tables[SHIPS])
        assert refused.rejection.row_id == "7"


def test_what_the_older_release_noted_of_its_last_look_at_schemas_is_understood(
    left_url: str,
) -> None:
    with open_ledger(left_url) as ledger:
        looked = last_look(ledger)
    assert looked is not None
    assert sorted(looked.tables) == sorted([SHIPS, REPORTS, PORTS])
    assert (f"{looked.at:%F}", looked.problems) == ("2026-01-12", {})


def test_instants_of_the_older_release_are_positions_in_the_same_order(left_url: str) -> None:
    with open_ledger(left_url) as ledger:
        for table in ledger.routes():
            known = ledger.history(table)
            assert known != ()
            for batch in known:
                position = InstantPosition(batch.t)
                assert (batch.position_kind, batch.position) == (position.kind, position.text)
                assert batch.rank == position.rank
            newest = max(batch.t for batch in known)
            version = ledger.newest_versions()[table.name].version
            leases = ledger.acquire(table, [0, 1], "a later run", HOUR)
            wanted = [Wanted(cell=known[0].cell, mode=Mode.COPY, fingerprint="fp")]
            before = newest - timedelta(microseconds=1)
            with pytest.raises(PlanRefused, match=InstantPosition(newest).text):
                ledger.plan(leases, before, version, wanted, "a later run")
            [again] = ledger.plan(leases, newest, version, wanted, "a later run")
            assert again.rank == InstantPosition(newest).rank


def test_work_goes_on_with_the_next_numbers(left_url: str) -> None:
    with open_ledger(left_url) as ledger:
        [ports] = [table for table in ledger.routes() if table.name == PORTS]
        seen = ledger.newest(ports)
        epochs = {lease.slice: lease.epoch for lease in ledger.leases(ports)}
        again = ledger.register_route(ports.facts)
        assert again == ports
        leases = ledger.acquire(again, [0, 1], "a later run", HOUR)
        assert {each.slice: each.epoch for each in leases.held} == {
            slice: epoch + 1 for slice, epoch in epochs.items()
        }
        window = CellKey.of_window(DAY, DAY + HOUR, 0)
        wanted = Wanted(cell=window, mode=Mode.COPY, fingerprint="fp")
        [batch] = ledger.plan(leases, ledger.now(), 2, [wanted], "a later run")
        # Rows of the older release are there: they are compared, not copied over.
        assert (batch.seq, batch.mode) == (seen.batch + 1, Mode.RECONCILE)
        other = replace(ports.facts, name="others", target="Others")
        known = {table.id for table in ledger.routes()}
        assert ledger.register_route(other).id not in known
