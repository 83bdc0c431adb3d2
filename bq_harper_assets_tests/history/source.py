"""A source table of a few rows: in the emulator, and in plain Python with every past version."""

import math
import time
import zlib
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.protocols import Fingerprint
from bq_harper_assets_tests.history.clock import Clock
from bq_harper_assets_tests.stores.small_tables import SmallTables

COLUMNS = "n INT64, ts TIMESTAMP, v FLOAT64, c STRING"
BAD = math.nan  # no JSON number: its row goes to quarantine

Content = tuple[object, ...]  # what a row says: with its key, if the table has one
Contents = Counter[Content]


@dataclass(frozen=True)
class Row:
    """One row of the source; `n` is its key, or a column that the contract leaves out."""

    n: int
    ts: datetime | None
    v: float
    c: str | None

    @property
    def is_bad(self) -> bool:
        """Whether no target can hold it."""
        return math.isnan(self.v)

    def content(self, keyed: bool) -> Content:
        """As Harper holds it."""
        v = "NaN" if self.is_bad else self.v  # NaN is not equal to itself
        told = (self.ts and f"{self.ts:%Y-%m-%dT%H:%M:%S.%fZ}", v, self.c)
        return (self.n, *told) if keyed else told


Rows = dict[int, Row]


@dataclass(kw_only=True)
class Source:
    """Changes row by row; `at` knows every past state."""

    tables: SmallTables
    table: TableRef
    clock: Clock
    rows: Rows = field(default_factory=dict)
    versions: list[tuple[datetime, datetime, Rows]] = field(default_factory=list)

    @classmethod
    def make(cls, tables: SmallTables, clock: Clock) -> "Source":
        """Empty."""
        source = cls(tables=tables, table=tables.make(COLUMNS), clock=clock)
        source._remember()
        return source

    def put(self, row: Row) -> None:
        """Inserted, or changed in place."""
        if row.n in self.rows:
            ts, v, c = _literals(row)
            self._run(f"UPDATE T SET ts = {ts}, v = {v}, c = {c} WHERE n = {row.n}")
            self.rows[row.n] = row
            self._remember()
        else:
            self.insert(row)

    def insert(self, *rows: Row) -> None:
        """All at once."""
        values = ", ".join(f"({row.n}, {', '.join(_literals(row))})" for row in rows)
        self._run(f"INSERT INTO T (n, ts, v, c) VALUES {values}")
        self.rows.update({row.n: row for row in rows})
        self._remember()

    def replace(self, *rows: Row) -> None:
        """Whatever they were before."""
        if known := [row.n for row in rows if row.n in self.rows]:
            self._run(f"DELETE FROM T WHERE n IN ({', '.join(map(str, known))})")
        self.insert(*rows)

    def delete(self, *ns: int) -> None:
        """Gone, until they are put again."""
        self._run(f"DELETE FROM T WHERE n IN ({', '.join(map(str, ns))})")
        for n in ns:
            del self.rows[n]
        self._remember()

    def at(self, t: datetime) -> Rows:
        """All rows as they were."""
        return next(rows for since, _, rows in reversed(self.versions) if since <= t)

    def fingerprints(
        self, at: datetime, start: datetime, end: datetime, window: timedelta, *, keyed: bool
    ) -> dict[datetime, Fingerprint]:
        """As BigQuery would make them at that instant of its own clock."""
        rows = next(rows for _, real, rows in reversed(self.versions) if real <= at)
        found = {}
        while start < end:
            last = min(start + window, end)
            held = [row for row in rows.values() if row.ts is not None and start <= row.ts < last]
            contents = [repr(row.content(keyed)) for row in held]
            low = sum(zlib.crc32(content.encode("utf-8")) for content in contents)
            found[start] = Fingerprint(rows=len(contents), distinct=len(set(contents)), low=low)
            start += window
        return found

    def real_instant(self, t: datetime) -> datetime:
        """When the emulator's own clock saw that state."""
        return next(real for since, real, _ in reversed(self.versions) if since <= t)

    def earlier(self, n: int) -> list[Row]:
        """What the row was before, oldest first."""
        found = [rows[n] for _, _, rows in self.versions if n in rows]
        return list(dict.fromkeys(row for row in found if not row.is_bad))

    def ever(self, keyed: bool) -> Contents:
        """The most of each content that there ever was at once."""
        most: Contents = Counter()
        for _, _, rows in self.versions:
            most |= Counter(row.content(keyed) for row in rows.values())
        return most

    def _run(self, statement: str) -> None:
        self.tables.run(statement.replace(" T ", f" {self.table.sql} "))

    def _remember(self) -> None:
        self.versions.append((self.clock.now, datetime.now(UTC), dict(self.rows)))
        self.clock.move(0.001)  # who looks now sees this version, and the next comes later
        time.sleep(0.001)  # likewise on the emulator's clock


def _literals(row: Row) -> tuple[str, str, str]:
    ts = "NULL" if row.ts is None else f"TIMESTAMP '{row.ts:%Y-%m-%d %H:%M:%S.%f}+00:00'"
    v = "CAST('NaN' AS FLOAT64)" if row.is_bad else repr(row.v)
    return ts, v, "NULL" if row.c is None else f"'{row.c}'"
