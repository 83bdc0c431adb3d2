"""What an older release has left behind is put into the stores, under names of a test's own.

`fill.py` says how the data were made, and which story they tell.
"""

import json
import sqlite3
import uuid
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.stores.harper.answers import Attribute
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.mirror.tables import make_system_tables
from bq_harper_assets_tests.older_release.fill import DATA, DATASET, SYSTEM_TABLES, TOKEN
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import TemporaryProject

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class LeftData:
    """A project whose tables an older release has synced; no other test has these tables."""

    project: TemporaryProject
    harper: HarperClient
    source: SmallTables
    token: str

    @classmethod
    def loaded(
        cls, project: TemporaryProject, harper: HarperClient, source: SmallTables
    ) -> "LeftData":
        """Ledger, Harper, BigQuery and configuration as they were left."""
        left = cls(
            project=project, harper=harper, source=source, token=uuid.uuid4().hex[: len(TOKEN)]
        )
        project.declare(*json.loads(left._text("tables.json")))
        write_ledger(left.ledger_file, left._text("ledger.sql"))
        left._fill_harper()
        source.queries.client.create_dataset(DATASET, exists_ok=True)
        for statement in left._text("source.sql").split(";\n\n"):
            if statement:
                source.run(statement)
        return left

    @property
    def ledger_file(self) -> Path:
        """The project's ledger."""
        return local_folder(self.project.root) / "ledger.db"

    def name(self, table: str) -> str:
        """What `ships`, `reports` or `ports` is called here, in the contract and in BigQuery."""
        return f"{table}_{self.token}"

    def change(self, table: str, statement: str) -> None:
        """A statement to BigQuery, with T for the table's name."""
        self.source.run(statement.replace(" T ", f" {DATASET}.{self.name(table)} "))

    def rows(self, table: str) -> dict[str, Row]:
        """What Harper holds now, by id."""
        found = self.harper.search_by_value(self._target(table), "ts", "*", ("*",))
        return by_id(found)

    def left_rows(self, table: str) -> dict[str, Row]:
        """What the older release left there, by id."""
        return by_id(json.loads(self._text("harper.json"))[self._target(table)]["rows"])

    def bend(self, table: str, row: Row) -> None:
        """Writes into Harper behind the sync's back."""
        self.harper.upsert(self._target(table), [row])

    def _target(self, table: str) -> str:
        return self.name(table).capitalize()

    def _text(self, file: str) -> str:
        return left_text(file).replace(TOKEN, self.token)

    def _fill_harper(self) -> None:
        for name, left in json.loads(self._text("harper.json")).items():
            if name not in SYSTEM_TABLES:
                self.harper.create_table(name, left["primary_key"], _attributes(left))
        assert make_system_tables(self.harper) == ()  # other tests share them
        for name, left in json.loads(self._text("harper.json")).items():
            if left["rows"]:
                self.harper.upsert(name, left["rows"])


@cache
def left_text(file: str) -> str:
    """One of the files as `fill.py` wrote it."""
    return (DATA / file).read_text(encoding="utf-8")


def write_ledger(file: Path, statements: str) -> None:
    """Makes the SQLite file that these statements describe."""
    with closing(sqlite3.connect(file)) as ledger:
        ledger.executescript(statements)


def by_id(rows: list[Row]) -> dict[str, Row]:
    """By the primary key, without what Harper notes of each row."""
    own = ("__createdtime__", "__updatedtime__")
    return {str(row["id"]): {k: v for k, v in row.items() if k not in own} for row in rows}


def _attributes(left: dict[str, Any]) -> list[Attribute]:
    return [
        Attribute(name=each["attribute"], type=each.get("type"), indexed=each.get("indexed", False))
        for each in left["attributes"]
    ]
