"""A source of a few rows at one instant: for comparisons that need no BigQuery."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import micros_at
from bq_harper_assets.schema.logical import TableSchema
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.stores.bigquery.fingerprint import SourceAtInstant
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.stores.harper.target import HarperTarget
from bq_harper_assets.sync.cells.cut import TimeCut
from bq_harper_assets.sync.turn_context import SourceReader
from bq_harper_assets_tests.schema.samples import TS, schema
from bq_harper_assets_tests.validation.committed import DAY, MINUTE, NUMBER


@dataclass(frozen=True)
class Rows:
    """One split: rows of a time in minutes after DAY and a number."""

    rows: Sequence[tuple[float, int]]
    name: str = "all"

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields them in one batch, the time first."""
        times = pa.array([DAY + m * MINUTE for m, _ in self.rows], pa.timestamp("us", "UTC"))
        numbers = pa.array([number for _, number in self.rows], pa.int64())
        yield pa.record_batch([times, numbers], names=[TS.name, NUMBER.name])


@dataclass
class SourceInMemory:
    """The source as it is at `t`; `now` has the rows of keys that are asked for."""

    contract: TableContract
    rows: Sequence[tuple[float, int]] = ()
    queries: Any = None
    t: datetime = DAY + 60 * MINUTE
    asked: list[list[datetime]] = field(default_factory=list)

    @property
    def schema(self) -> TableSchema:
        """The columns of a row."""
        return schema(NUMBER)

    @property
    def plan(self) -> TablePlan:
        """How the rows are stored."""
        return harper_plan(self.contract, self.schema)

    @property
    def source(self) -> SourceAtInstant:
        """What queries name."""
        table = TableRef("p", "shop", "orders")
        return SourceAtInstant(table=table, columns=(TS, NUMBER), time_column=TS)

    def splits_at(self, instants: Sequence[datetime], most: int) -> list[Rows]:
        """Gives the rows of these times alone."""
        self.asked.append(list(instants))
        wanted = set(instants)
        return [Rows([row for row in self.rows if DAY + row[0] * MINUTE in wanted])]

    def times_of_keys(self, keys: Sequence[Any]) -> Mapping[int, int | None]:
        """Gives the time of each key's row, by its place among the keys."""
        times = {number: micros_at(DAY + minute * MINUTE) for minute, number in self.rows}
        return {at: times[key] for at, (key,) in enumerate(keys) if key in times}

    def counts(self) -> dict[datetime, int]:
        """Counts the rows of each time."""
        found: dict[datetime, int] = {}
        for minute, _ in self.rows:
            moment = DAY + minute * MINUTE
            found[moment] = found.get(moment, 0) + 1
        return found

    def reader(self, client: HarperClient) -> SourceReader:
        """Reads it as a turn does."""
        pin: Any = self
        cut = TimeCut(self.contract.window)
        target = HarperTarget(self.contract, client)
        return SourceReader(contract=self.contract, cut=cut, pin=pin, target=target)
