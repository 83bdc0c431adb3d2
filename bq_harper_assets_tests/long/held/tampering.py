"""Kinds of tampering with Harper's rows behind the product's back, and what a proof must name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bq_harper_assets_tests.long.held.plain_http import PlainHarper, Row

Named = set[tuple[str, Any, frozenset[str]]]  # (kind of difference, id, columns that differ)
WHOLE: frozenset[str] = frozenset()  # of a row that only one store has
OTHER_HASH = "0" * 13


@dataclass(frozen=True)
class Tampered:
    """One table of Harper's, changed by somebody else."""

    harper: PlainHarper
    table: str

    def merge(self, row: Row, **changed: Any) -> Named:
        """Values of a row, whose other values stay, its hash too."""
        self.harper.upsert(self.table, [{"id": row["id"], **changed}])
        return {("changed", row["id"], frozenset(changed) - {"_hash"})}

    def delete(self, row: Row) -> Named:
        """A row."""
        self.harper.delete(self.table, [row["id"]])
        return {("missing", row["id"], WHOLE)}

    def empty(self, rows: Sequence[Row]) -> Named:
        """All rows of a window."""
        self.harper.delete(self.table, [row["id"] for row in rows])
        return {("missing", row["id"], WHOLE) for row in rows}

    def lose_the_time(self, row: Row) -> Named:
        """A row whose time is none, so that no window has it."""
        self.merge(row, ts="garbage")
        return {("missing", row["id"], WHOLE)}

    def add(self, row: Row, **changed: Any) -> Named:
        """A row that BigQuery never had, like another one."""
        number = row["number"] + 1_000_000
        self.harper.upsert(self.table, [{**row, "id": number, "number": number, **changed}])
        return {("phantom", number, WHOLE)}

    def move(self, row: Row, by: timedelta) -> Named:
        """A row to another window: gone from its own, and too much in the other."""
        self.merge(row, ts=_moved(row["ts"], by))
        return {("missing", row["id"], WHOLE), ("phantom", row["id"], WHOLE)}


def _moved(text: str, by: timedelta) -> str:
    moment = datetime.fromisoformat(text.replace("Z", "+00:00")) + by
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond:06}Z"


HOUR, TICK = timedelta(hours=1), timedelta(microseconds=1)
KINDS: dict[str, Callable[[Tampered, Row], Named]] = {
    "a row is deleted": Tampered.delete,
    "a value is bent and its hash stays": lambda t, row: t.merge(row, name="bent"),
    "a value is bent and its hash too": lambda t, row: t.merge(row, name="b", _hash=OTHER_HASH),
    "a text gets a space at its end": lambda t, row: t.merge(row, name=f"{row['name']} "),
    "a number changes in its last digit": lambda t, row: t.merge(row, speed=row["speed"] + 1e-9),
    "a boolean is turned round": lambda t, row: t.merge(row, docked=not row["docked"]),
    "a date is another day": lambda t, row: t.merge(row, built="1999-12-31"),
    "bytes are others": lambda t, row: t.merge(row, flag="AAAA"),
    "a value becomes null": lambda t, row: t.merge(row, name=None),
    "JSON changes its type": lambda t, row: t.merge(row, doc=[row["doc"]]),
    "an array becomes a text": lambda t, row: t.merge(row, tags="a"),
    "an array gets longer": lambda t, row: t.merge(row, tags=[*row["tags"], "a"]),
    "a member of a record changes": lambda t, row: t.merge(row, place={**row["place"], "lat": 91}),
    "a record gets a member": lambda t, row: t.merge(row, place={**row["place"], "more": 7}),
    "a record becomes null": lambda t, row: t.merge(row, place=None),
    "a row gets an attribute": lambda t, row: t.merge(row, extra="somebody's"),
    "a time moves by a microsecond": lambda t, row: t.merge(row, ts=_moved(row["ts"], TICK)),
    "a time moves to another window": lambda t, row: t.move(row, HOUR),
    "a time becomes garbage": Tampered.lose_the_time,
    "the key is another under its id": lambda t, row: t.merge(row, number=row["number"] + 1),
    "a row is added": Tampered.add,
    "a row is added without a hash": lambda t, row: t.add(row, _hash=None),
}
