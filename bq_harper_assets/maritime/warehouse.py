"""Makes, fills, counts, trims, empties and drops the sample tables in BigQuery."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow.parquet as pq

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.errors import BqhError
from bq_harper_assets.maritime.disorder import DELETE, MOVE, UPDATE
from bq_harper_assets.maritime.itinerary import Ints
from bq_harper_assets.maritime.reports import Reports, moment
from bq_harper_assets.maritime.tables import EVENTS, POSITIONS, REGISTER, SHAPES, with_optional
from bq_harper_assets.stores.bigquery.dataset import Dataset

_WHO = {POSITIONS.name: "mmsi", EVENTS.name: "vessel_mmsi", REGISTER.name: "mmsi"}
_ADDRESSES_PER_STATEMENT = 2_000

_ADDRESSED = "WHERE timestamp IN UNNEST(@times) AND mmsi IN UNNEST(@vessels)"
_EARLIER = "TIMESTAMP_SUB(timestamp, INTERVAL 3 HOUR)"
_CHANGES = {
    UPDATE: "UPDATE `{dataset}.vessel_positions` SET draft = draft + 0.5 " + _ADDRESSED,
    MOVE: f"UPDATE `{{dataset}}.vessel_positions` SET timestamp = {_EARLIER},"
    f" report_date = FORMAT_TIMESTAMP('%Y%m%d', {_EARLIER}) {_ADDRESSED}",
    DELETE: "DELETE FROM `{dataset}.vessel_positions` " + _ADDRESSED,
}


class NoSampleData(BqhError):
    """The sample tables do not exist."""


@dataclass(frozen=True, kw_only=True)
class TableStats:
    """Table stats say what is in one table; times are None if it has no rows."""

    table: str
    rows: int
    oldest: datetime | None
    newest: datetime | None
    vessels: int


def parquet_bytes(rows: Any) -> bytes:
    """Writes rows as Parquet; the same rows give the same bytes."""
    file = io.BytesIO()
    pq.write_table(rows, file, compression="zstd", store_schema=False)
    return file.getvalue()


class Warehouse:
    """A warehouse is the three tables in one dataset."""

    def __init__(self, connection: BigQueryConnection, dataset: str) -> None:
        self.dataset = Dataset(connection, dataset)

    def make(self, *, null_timestamps: bool = False) -> None:
        """Makes the tables that are missing."""
        for shape in SHAPES:
            optional = null_timestamps and shape is POSITIONS
            self.dataset.make(with_optional(shape, "timestamp") if optional else shape)

    def missing(self) -> list[str]:
        """Returns the names of the tables that do not exist."""
        return [shape.name for shape in SHAPES if self.dataset.labels(shape.name) is None]

    def append(self, table: str, rows: Any) -> None:
        """Appends all of the rows or none, with one load job."""
        self.dataset.append_parquet(table, io.BytesIO(parquet_bytes(rows)))

    def newest(self, table: str, now: datetime) -> datetime | None:
        """Returns the newest stored time that is not in the future."""
        column = next(shape.day_column for shape in SHAPES if shape.name == table)
        found = self.dataset.query(
            f"SELECT MAX({column}) FROM `{{dataset}}.{table}` WHERE {column} <= @now", {"now": now}
        )
        newest: datetime | None = found[0][0]
        return newest

    def stats(self) -> list[TableStats]:
        """Returns the stats of all three tables; raises NoSampleData if one is missing."""
        if missing := self.missing():
            raise NoSampleData(
                f"no sample data in {self.dataset.id}: {', '.join(missing)} not found. Nothing was"
                " changed; make it with `bqh maritime initialize small`."
            )
        found = []
        for shape in (POSITIONS, EVENTS, REGISTER):
            time, who = shape.day_column, _WHO[shape.name]
            row = self.dataset.query(
                f"SELECT COUNT(*), MIN({time}), MAX({time}), COUNT(DISTINCT {who})"
                f" FROM `{{dataset}}.{shape.name}`"
            )[0]
            found.append(
                TableStats(
                    table=shape.name, rows=row[0], oldest=row[1], newest=row[2], vessels=row[3]
                )
            )
        return found

    def change(self, reports: Reports, number: Ints) -> None:
        """Updates, moves in time and deletes those stored rows that are to be changed."""
        for kind, sql in _CHANGES.items():
            chosen = reports.of_kind(number, kind)
            for first in range(0, len(chosen), _ADDRESSES_PER_STATEMENT):
                some = chosen[first : first + _ADDRESSES_PER_STATEMENT]
                times = [moment(time) for time in reports.times(some)]
                self.dataset.change(sql, {"times": times, "vessels": reports.mmsi(some)})

    def trim(self, older_than: datetime) -> int:
        """Deletes positions and events from before that time; the register stays whole."""
        return sum(
            self.dataset.change(
                f"DELETE FROM `{{dataset}}.{shape.name}` WHERE {shape.day_column} < @cutoff",
                {"cutoff": older_than},
            )
            for shape in (POSITIONS, EVENTS)
        )

    def clear(self, say: Callable[[str], None]) -> None:
        """Deletes all rows; the tables stay."""
        for shape in SHAPES:
            if self.dataset.labels(shape.name) is not None:
                gone = self.dataset.change(f"DELETE FROM `{{dataset}}.{shape.name}` WHERE TRUE")
                say(f"{shape.name}: {gone:,} rows deleted")

    def clean(self, say: Callable[[str], None]) -> None:
        """Drops the tables; the dataset stays, because it may have others."""
        for shape in SHAPES:
            self.dataset.drop(shape.name)
            say(f"{shape.name}: dropped")
