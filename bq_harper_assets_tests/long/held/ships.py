"""The source of the scenarios: a table of ships with a column of each common kind."""

import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bq_harper_assets_tests.long.held.plain_http import Emulator, Row

START, HOUR = datetime(2026, 1, 5, tzinfo=UTC), timedelta(hours=1)
COLUMNS = (
    {"name": "number", "type": "INT64"},
    {"name": "ts", "type": "TIMESTAMP"},
    {"name": "name", "type": "STRING"},
    {"name": "speed", "type": "FLOAT64"},
    {"name": "docked", "type": "BOOL"},
    {"name": "built", "type": "DATE"},
    {"name": "flag", "type": "BYTES"},
    {"name": "doc", "type": "JSON"},
    {"name": "tags", "type": "STRING", "mode": "REPEATED"},
    {
        "name": "place",
        "type": "STRUCT",
        "fields": [{"name": "lat", "type": "FLOAT64"}, {"name": "port", "type": "STRING"}],
    },
)


@dataclass(frozen=True)
class Ships:
    """One table of the emulator."""

    emulator: Emulator
    name: str

    @classmethod
    def made(cls, emulator: Emulator) -> "Ships":
        """Empty."""
        ships = cls(emulator, f"ships_{uuid.uuid4().hex[:12]}")
        emulator.make_table("held", ships.name, COLUMNS)
        return ships

    def copied_to(self, name: str) -> None:
        """Another table with the rows of this one."""
        self.emulator.make_table("held", name, COLUMNS)
        self.emulator.run(f"INSERT INTO held.{name} SELECT * FROM {self.sql}")

    @property
    def sql(self) -> str:
        """Its name in a query."""
        return f"held.{self.name}"

    def insert(self, rows: Sequence[str]) -> None:
        """Rows as `values` writes them."""
        names = ", ".join(str(column["name"]) for column in COLUMNS)
        self.emulator.run(f"INSERT INTO {self.sql} ({names}) VALUES {', '.join(rows)}")

    def rows(self, start: datetime, end: datetime) -> list[Row]:
        """Those of a time."""
        return self.emulator.rows(self.sql, f"ts >= {moment(start)} AND ts < {moment(end)}")


def values(number: int, ts: datetime, chance: random.Random) -> str:
    """One row of VALUES; some values are NULL."""

    def or_null(text: str) -> str:
        return "NULL" if chance.random() < 0.1 else text

    name = chance.choice(["Ana", "Borée", "嵐", "O''Neil", "", " ", "x" * 300])
    tags = ", ".join(f"'{chance.choice('abc')}'" for _ in range(chance.randrange(4)))
    lat, port = round(chance.uniform(-90, 90), 4), chance.choice(["Oslo", "Accra"])
    doc = chance.choice(['{"a": [1, 2, {"b": null}]}', '"text"', "17", "[]", "true"])
    texts = [
        or_null(f"'{name} {number}'"),
        or_null(str(round(chance.uniform(-50, 50), 3))),
        or_null(chance.choice(["TRUE", "FALSE"])),
        or_null(f"DATE '20{chance.randrange(10, 26)}-02-03'"),
        or_null(f"b'{chance.choice('xyz')}{number}'"),
        or_null(f"JSON '{doc}'"),
        f"[{tags}]",
        f"STRUCT({lat} AS lat, '{port}' AS port)",
    ]
    return f"({number}, {moment(ts)}, {', '.join(texts)})"


def moment(at: datetime) -> str:
    """As SQL has it."""
    return f"TIMESTAMP '{at:%Y-%m-%d %H:%M:%S.%f}+00'"
