"""A ledger of an earlier release is taken over with all that it holds."""

import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from pydantic import SecretStr
from sqlalchemy import Connection, column, insert, select, table, update

from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import BatchState, CellState, Intent, Mode, SchemaVersion
from bq_harper_assets.ledger.store import migrations
from bq_harper_assets.ledger.store.columns import Instant, database_now, duration_micros
from bq_harper_assets.ledger.store.database import Database
from bq_harper_assets.ledger.store.tables import IDENTITY
from bq_harper_assets_tests.conftest import PROJECT_ROOT
from bq_harper_assets_tests.ledger.sample import FACTS, HOUR, START, TTL, T, cell, copy, result

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _insert(connection: Connection, into: str, **values: Any) -> None:
    """Without the tables of today's code, which may differ."""
    columns = [
        column(name, Instant() if isinstance(value, datetime) else None)
        for name, value in values.items()
    ]
    connection.execute(insert(table(into, *columns)).values(**values))


def upgrade(connection: Connection, revision: str) -> None:
    """Makes the tables as they were at this revision."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def _first_release(url: str) -> None:
    """A ledger with a table of two cells: one committed twice, one left planned."""
    database = Database(SecretStr(url))
    with database.writing() as connection:
        upgrade(connection, "v0001")
        _insert(
            connection,
            "logical_tables",
            id=1,
            name=FACTS.name,
            source=FACTS.source,
            target=FACTS.target,
            timestamp_column=FACTS.timestamp_column,
            key_columns='["mmsi", "ts"]',
            window_us=duration_micros(HOUR),
            slices=FACTS.slices,
            last_batch=3,
            registered_at=T,
        )
        _insert(connection, "schema_versions", table_id=1, version=1, body="{}", recorded_at=T)
        for slice in range(FACTS.slices):
            newest = {"snapshot": T, "schema_version": 1}
            _insert(connection, "leases", table_id=1, slice=slice, epoch=1, **newest)
        place = {"table_id": 1, "slice": 0, "window_start": START}
        commit = {"batch": 2, "snapshot": T, "schema_version": 1, "rows": 9, "digest": "d"}
        ends = {"window_end": START + HOUR, "fingerprint": "fp", "committed_at": T}
        _insert(connection, "cells", **place, state="synced", **commit, **ends)
        later = {**place, "window_start": START + HOUR}
        _insert(connection, "cells", **later, window_end=START + 2 * HOUR, state="planned")
        plan = {"snapshot": T, "schema_version": 1, "owner": "ann", "epoch": 1, "run_id": "r"}
        plan |= {"fingerprint": "fp", "planned_at": T}
        done = {"rows_read": 10, "rows_written": 9, "rows_unchanged": 0, "rows_quarantined": 1}
        done |= {"rows_deleted": 0, "ended_at": T, "state": "applied"}
        _insert(connection, "batches", **place, **plan, seq=1, mode="copy", **done)
        _insert(connection, "batches", **place, **plan, seq=2, mode="upsert", **done)
        _insert(connection, "batches", **later, **plan, seq=3, mode="copy", state="planned")
        row = {"number": 0, "batch": 2, "row_id": "7", "reason": "NaN", "payload": "{}", "at": T}
        _insert(connection, "quarantine", **place, **row)
    database.close()


def test_a_ledger_of_the_first_release_keeps_its_tables_cells_and_batches(unused_url: str) -> None:
    _first_release(unused_url)
    with open_ledger(unused_url) as ledger:
        (known,) = ledger.routes()
        assert known.facts == FACTS
        synced, planned = ledger.cells(known, START, START + 2 * HOUR)
        assert synced.is_clean
        assert synced.commit is not None
        assert (synced.commit.upto, synced.commit.is_closed) == (START + HOUR, True)
        assert (synced.commit.rows, synced.commit.fingerprint) == (9, "fp")
        assert synced.commit.fingerprint_version == 1
        assert (planned.state, planned.commit) == (CellState.PLANNED, None)
        assert [(one.mode, one.state, one.upto, one.cell) for one in ledger.history(known)] == [
            (Mode.COPY, BatchState.PLANNED, START + 2 * HOUR, cell(1)),
            (Mode.RECONCILE, BatchState.APPLIED, START + HOUR, cell(0)),
            (Mode.COPY, BatchState.APPLIED, START + HOUR, cell(0)),
        ]
        newest = ledger.history(known, cell(0))[0]
        assert (newest.rows_read, newest.rows_moved, newest.since) == (10, 0, None)
        assert [row.rejection.row_id for row in ledger.quarantined(known)] == ["7"]
        assert ledger.progress(known, START).rows == 9
        assert ledger.schema_history(known) == (
            SchemaVersion(version=1, body={}, recorded_at=T, by="", cause=""),
        )


def test_a_ledger_of_the_first_release_can_be_worked_with(unused_url: str) -> None:
    _first_release(unused_url)
    with open_ledger(unused_url) as ledger:
        (known,) = ledger.routes()
        leases = ledger.acquire(known, [0], "bob", TTL)
        batches = ledger.plan(leases, T, 1, [copy(cell(hour)) for hour in (0, 1, 2)], "run")
        assert [batch.mode for batch in batches] == [Mode.RECONCILE, Mode.RECONCILE, Mode.COPY]
        assert [batch.seq for batch in batches] == [4, 5, 6]
        ledger.commit_cells(leases, [(batch, result()) for batch in batches])
        ledger.release(leases)
        assert ledger.record_schema(known, {"columns": []}, 1, "ann", "drift").by == "ann"
        assert ledger.rebase_fingerprints(known, 2, [(cell(0), 4, "fewer")]) == 1
        assert ledger.claim("schema_check", "ann", TTL).epoch == 1
        assert ledger.change_slices(known, 2).facts.slices == 2


def test_what_earlier_releases_took_out_is_counted_with_what_is_to_be_deleted(
    unused_url: str,
) -> None:
    _first_release(unused_url)
    database = Database(SecretStr(unused_url))
    with database.writing() as connection:
        upgrade(connection, "v0005")
        lost = {"rows_deleted": 5, "rows_held": 14, "deletes_allowed": False}
        lost["ended_at"] = duration_micros(database_now(connection) - EPOCH)
        batches = table("batches", *(column(name) for name in ("seq", *lost)))
        connection.execute(update(batches).where(batches.c.seq == 2).values(**lost))
    database.close()
    with open_ledger(unused_url) as ledger:
        (known,) = ledger.routes()
        (before,) = ledger.recent_losses(known, HOUR)
        assert (before.cell, before.lost, before.held, before.rows) == (cell(0), 5, 14, 9)
        leases = ledger.acquire(known, [0], "bob", TTL)
        (batch,) = ledger.plan(leases, T, 1, [copy(cell(1))], "run")
        ledger.intend_deletes(leases, [Intent(batch, 3, 4)], allowed=False)
        assert [one.lost for one in ledger.recent_losses(known, HOUR)] == [5, 3]


def test_a_ledger_says_the_first_release_that_knows_its_layout(unused_url: str) -> None:
    open_ledger(unused_url).close()
    database = Database(SecretStr(unused_url))
    with database.reading() as connection:
        needed = connection.execute(select(IDENTITY.c.release)).scalar_one()
    database.close()
    project = tomllib.loads((PROJECT_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    mine = project["project"]["version"]
    assert (0, 2, 0) <= _numbers(needed) <= _numbers(mine)


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))
