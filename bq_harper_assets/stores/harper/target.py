"""Harper as a target: it has no compare-and-set, applies requests late, and merges.

So its writes are sent under a deadline that a copy of the lease in Harper moves on, its rows are
read back and compared, and a refused request is cut in half until single rows are refused.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import instant_at
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.stores.harper.answers import require_ids
from bq_harper_assets.stores.harper.client import IDS_PER_REQUEST, HarperClient
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.stores.harper.lease.lease_mirror import HarperLeaseMirror
from bq_harper_assets.stores.harper.lease.ledger_agreement import holds_a_row, require_in_step
from bq_harper_assets.stores.harper.reading.deep_hash import (
    RecordHashes,
    records_of,
    source_hashes,
)
from bq_harper_assets.stores.harper.reading.record_comparison import differing_values
from bq_harper_assets.stores.harper.reading.target_rows import (
    StoredHashes,
    held_by_id,
    ranges_of,
    read_held,
    text_of,
)
from bq_harper_assets.stores.harper.reading.target_times import stored_micros
from bq_harper_assets.stores.harper.table.ensure_table import ensure_table
from bq_harper_assets.stores.harper.task_login import TaskLogin, task_login
from bq_harper_assets.stores.harper.writing.removal import HarperRemoval
from bq_harper_assets.stores.harper.writing.row_writer import HarperRowWriter
from bq_harper_assets.sync.arrays.arrow_memory import UInt64s
from bq_harper_assets.sync.protocols import (
    Ensured,
    KeyValues,
    LeaseTerms,
    TargetRange,
    TargetRows,
    WriteOrder,
)
from bq_harper_assets.sync.source.cell_rows import CellRows, Reading
from bq_harper_assets.sync.spark.task_waits import FOLDER_SETTING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class HarperReader:
    """A reader reads Harper's rows back in one task."""

    client: HarperClient
    table: str
    plan: RowPlan
    slices: int
    hashed: StoredHashes | RecordHashes

    @property
    def extras(self) -> set[str]:
        """Returns the attributes so far that no sync wrote, where values are compared."""
        return self.hashed.extras if isinstance(self.hashed, RecordHashes) else set()

    def rows(self, ranges: Sequence[TargetRange]) -> Iterator[tuple[TargetRange, TargetRows]]:
        """Reads the rows range by range; a row that is marked as deleted gets the hash FLAGGED."""
        return read_held(self.client, self.table, self.plan, ranges, self.slices, self.hashed)


@dataclass(frozen=True, kw_only=True)
class HarperOfTasks:
    """This is Harper as tasks reach it; the secrets are not sent with it."""

    login: TaskLogin
    table: str
    retry: RetryPolicy

    @property
    def waits(self) -> Path | None:
        """Returns where tasks on the driver's machine note what they wait for."""
        return self.login.waits

    def writer(self, order: WriteOrder, reading: Reading) -> HarperRowWriter:
        """Opens a writer; its owner closes it."""
        connection = self.login.connection()
        return HarperRowWriter(
            connection, self.table, self.retry, order, reading.layout, reading.grid
        )

    @contextmanager
    def reader(
        self, layout: RowPlan, slices: int, *, deep: bool, as_written: bool
    ) -> Iterator[HarperReader]:
        """Opens a reader; `deep` hashes the values, `as_written` the stored hash with them."""
        hashed = RecordHashes(as_written) if deep else StoredHashes()
        with HarperClient(self.login.connection(), retry=self.retry) as client:
            yield HarperReader(client, self.table, layout, slices, hashed)

    @contextmanager
    def row_times(
        self, layout: RowPlan
    ) -> Iterator[Callable[[pa.Array], Iterable[tuple[Any, int | None]]]]:
        """Opens a look-up of rows by id: the ids that are there, and times in microseconds."""
        with HarperClient(self.login.connection(), retry=self.retry) as client:
            yield lambda ids: _row_times(client, self.table, layout, ids)

    def value_hashes(self, rows: CellRows, layout: RowPlan, *, as_written: bool) -> UInt64s:
        """Hashes rows of the source by the values that should be stored."""
        return source_hashes(rows, layout, as_written=as_written)

    def records(
        self, rows: CellRows, layout: RowPlan
    ) -> Iterator[tuple[Mapping[str, Any], str | None]]:
        """Yields each row as the record that should be stored, or the reason why it cannot be."""
        return records_of(rows, layout)


@dataclass(frozen=True)
class HarperTarget:
    """This is a contract's table in a Harper that is open."""

    contract: TableContract
    client: HarperClient
    until_closed: ExitStack = field(default_factory=ExitStack)

    @property
    def tasks(self) -> int:
        """Returns how many requests Harper serves at once: one per server thread."""
        return self.client.connection.requests_in_flight or self.client.server_threads() or 1

    def require_in_step(self, ledger: Ledger, table: LedgerRoute) -> None:
        """Raises OutOfStep if the ledger and Harper contradict each other."""
        require_in_step(ledger, self.client, table, adopted=self._is_adopted)

    def holds_a_row(self) -> bool:
        """Says whether the table is there and has a row."""
        found = self.client.describe_table(self.contract.target.table)
        return found is not None and holds_a_row(self.client, found)

    def ensure(
        self,
        plan: TablePlan,
        alone: Callable[[], AbstractContextManager[object]],
        sleep: Callable[[float], None],
    ) -> Ensured:
        """Makes or evolves the table; nothing is dropped."""
        return ensure_table(self.client, plan, adopted=self._is_adopted, alone=alone, sleep=sleep)

    def mirror(self, ledger: Ledger, table: LedgerRoute, owner: str) -> HarperLeaseMirror:
        """Returns what shows leases to tasks; its copies tell one ledger from another, too."""
        hurried = HarperClient(self.client.connection, retry=self.client.retry.once())
        self.until_closed.enter_context(hurried)
        identity = str(ledger.identity())
        return HarperLeaseMirror(self.client, hurried, table.facts.target, identity, owner)

    def layout(self, plan: TablePlan, others: frozenset[str] | None = None) -> RowPlan:
        """Returns how rows become records; `others` are paths that records may also have."""
        return replace(RowPlan.of(plan), others=others)

    def known_paths(self, plan: TablePlan) -> frozenset[str]:
        """Returns what rows may have besides the synced columns.

        That is what the schema version knows, and what the Harper table declares: a declared
        attribute belongs to its owner, as in a table that was adopted.
        """
        described = self.client.describe_table(plan.table)
        declared = described.attributes if described else ()
        return plan.version.known_paths | {attribute.name for attribute in declared}

    def keys_of(self, plan: TablePlan, ids: Sequence[Any]) -> list[KeyValues | None]:
        """Returns the key of each row; None if Harper has no such row, or no key in it."""
        if RowPlan.of(plan).id_column is not None:
            return [[row_id] for row_id in ids]
        key = plan.selection.key
        held: dict[Any, dict[str, Any]] = {}
        for some, rows in self._rows(plan, ids, key):
            held.update(zip(some, rows, strict=True))
        values = [[held.get(row_id, {}).get(name) for name in key] for row_id in ids]
        return [None if None in each else each for each in values]

    def stored(self, layout: RowPlan, ids: Sequence[Any]) -> dict[Any, Mapping[str, Any]]:
        """Reads the rows that have these ids, with all attributes; returns them by id."""
        return held_by_id(self.client, self.contract.target.table, layout, ids)

    def differing(
        self, layout: RowPlan, expected: Mapping[str, Any], actual: Mapping[str, Any]
    ) -> dict[str, tuple[Any, Any]]:
        """Compares a record with what it should be; gives the columns that differ."""
        return differing_values(expected, actual, layout)

    def older_than(self, plan: TablePlan, ids: Sequence[Any], instant: datetime) -> Collection[Any]:
        """Returns those of the ids whose rows have a time before the instant."""
        column = self.contract.timestamp_column
        first = text_of(plan.selection.timestamp.kind, instant)
        return {
            row_id
            for some, rows in self._rows(plan, ids, (column,))
            for row_id, row in zip(some, rows, strict=True)
            if str(row.get(column)) < first
        }

    def ranges(
        self, plan: TablePlan, place: int, begin: int, end: int, rows: int
    ) -> list[TargetRange]:
        """Divides [begin, end) of one window into parts that are one request each."""
        kind = plan.selection.timestamp.kind
        return ranges_of(place, instant_at(begin), instant_at(end), rows, kind)

    def of_tasks(self, spark: "SparkSession") -> HarperOfTasks:
        """Writes the login for tasks of this machine, and returns what is sent to them."""
        login = task_login(self.client.connection, spark.conf.get(FOLDER_SETTING, None))
        return HarperOfTasks(login=login, table=self.contract.target.table, retry=self.client.retry)

    def removal(self, lease: LeaseTerms) -> HarperRemoval:
        """Opens a removal of rows under the lease."""
        client, table = self.client, self.contract.target.table
        return HarperRemoval(client.connection, table, lease, client.retry)

    def transaction(self) -> None:
        """Returns nothing: Harper takes each request by itself."""
        return None

    @property
    def _is_adopted(self) -> bool:
        return self.contract.target.is_adopted

    def _rows(
        self, plan: TablePlan, ids: Sequence[Any], names: Sequence[str]
    ) -> Iterator[tuple[Sequence[Any], list[dict[str, Any]]]]:
        table, primary = self.contract.target.table, plan.primary_key
        for first in range(0, len(ids), IDS_PER_REQUEST):
            some = ids[first : first + IDS_PER_REQUEST]
            rows = self.client.search_by_id(table, some, (primary, *names))
            yield require_ids(rows, primary, "search_by_id", table), rows


@contextmanager
def harper_target(
    contract: TableContract, connection: HarperConnection, retry: RetryPolicy
) -> Iterator[HarperTarget]:
    """Opens a contract's table in Harper."""
    with ExitStack() as until_closed:
        client = until_closed.enter_context(HarperClient(connection, retry=retry))
        yield HarperTarget(contract, client, until_closed)


def _row_times(
    client: HarperClient, table: str, plan: RowPlan, ids: pa.Array
) -> Iterator[tuple[Any, int | None]]:
    kind = next(column.kind for column in plan.columns if column.name == plan.timestamp)
    for first in range(0, len(ids), IDS_PER_REQUEST):
        some = ids.slice(first, IDS_PER_REQUEST).to_pylist()
        held = client.search_by_id(table, some, (plan.primary_key, plan.timestamp))
        if held:
            times = stored_micros([row.get(plan.timestamp) for row in held], kind)
            found = require_ids(held, plan.primary_key, "search_by_id", table)
            yield from zip(found, times, strict=True)
