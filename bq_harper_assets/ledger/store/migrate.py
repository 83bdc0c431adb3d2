"""Brings the ledger's tables to this release's layout when it is opened."""

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, select, text, update

from bq_harper_assets.ledger.errors import LedgerTooNew
from bq_harper_assets.ledger.store.database import Database
from bq_harper_assets.ledger.store.kept_copy import keep_copy
from bq_harper_assets.ledger.store.tables import IDENTITY

_SCRIPTS = Path(__file__).with_name("migrations")
_LOCK = 4_823_105_776  # any number that no other user of the PostgreSQL database locks


def migrate(database: Database) -> None:
    """Migrates the ledger; of several processes that open it, one migrates and the others wait.

    A copy of a SQLite ledger is kept beside it before. LedgerTooNew if a newer release has opened
    it, whose layout this one does not know.
    """
    with database.reading() as connection:
        if _revision(connection) == _newest_revision():
            return
    config = _config()
    scripts = ScriptDirectory.from_config(config)
    with database.writing() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        revision = _revision(connection)
        if revision and revision not in {script.revision for script in scripts.walk_revisions()}:
            raise LedgerTooNew(database.address, revision, _release(connection))
        if revision == _newest_revision():
            return  # another process has migrated it while this one waited
        if revision and database.file is not None:
            # Nobody writes meanwhile: this transaction has SQLite's one lock for it.
            keep_copy(database.file, revision, database.address)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        # An older release names the one that is needed, so the layout's own release is recorded.
        needed = scripts.get_revision("head").module.release
        connection.execute(update(IDENTITY).values(release=needed))


@cache
def _newest_revision() -> str | None:
    """Finds this release's layout once: each look reads and runs all migrations' files."""
    return ScriptDirectory.from_config(_config()).get_current_head()


def _release(connection: Connection) -> str | None:
    """Finds the first release that knows the ledger's layout; None if it does not say so."""
    columns = {column["name"] for column in inspect(connection).get_columns(IDENTITY.name)}
    if IDENTITY.c.release.name not in columns:
        return None
    return connection.execute(select(IDENTITY.c.release)).scalar_one_or_none()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    return config


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()
