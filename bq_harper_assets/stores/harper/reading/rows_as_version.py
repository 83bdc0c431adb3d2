"""Harper's rows of a table are read as rows of one version of its schema."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from typing import Any

from bq_harper_assets.contract.identifiers import BATCH, DELETED_AT
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.schema.version import TableVersion, VersionColumn
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.stores.harper.reading.conversions import absent, converted
from bq_harper_assets.stores.harper.reading.from_harper import from_harper
from bq_harper_assets.stores.harper.reading.target_rows import text_of
from bq_harper_assets.stores.harper.types import HarperColumn
from bq_harper_assets.sync.schema_sync.version_history import version_named

_ROWS_PER_REQUEST = 1_000
_FIRST, _LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


def read_rows_as(
    harper: HarperClient,
    ledger: Ledger,
    contract: TableContract,
    version: int | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    limit: int | None = None,
) -> Iterator[dict[str, Any]]:
    """Yields rows of [start, end) in the order of time, in the columns of `version` or the newest.

    Rows that are marked as deleted are left out. Raises NoSuchVersion if there is no such version.
    """
    table, recorded = version_named(ledger, contract, version)
    wanted = TableVersion.parse(recorded.body)
    timestamp = wanted.find(contract.timestamp_column)
    assert timestamp is not None  # no version is recorded without it
    low, high = (text_of(timestamp.kind, each) for each in (start or _FIRST, end or _LAST))
    # One row more than is wanted shows whether the last instant is complete.
    size = _ROWS_PER_REQUEST if limit is None else min(limit + 1, _ROWS_PER_REQUEST)
    pages = _pages(harper, contract, low, high, size)
    return islice(_rows(ledger, table, wanted, pages), limit)


def _pages(
    harper: HarperClient, contract: TableContract, low: str, high: str, rows_per_request: int
) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Yields pages that each begin at the last time of the page before.

    Pages by offset would miss rows while others are deleted.
    """
    name = contract.timestamp_column
    size = rows_per_request
    while True:
        within = Condition(name, "gelt", [low, high])
        rows = harper.search_by_conditions(
            contract.target.table, [within], sort_by=name, limit=size
        )
        if len(rows) < size:
            yield rows
            return
        # Other rows of the last instant may not be on this page.
        last = rows[-1][name]
        if complete := [row for row in rows if row[name] != last]:
            yield complete
            low, size = last, rows_per_request
        else:
            size *= 2


def _rows(
    ledger: Ledger,
    table: LedgerRoute,
    wanted: TableVersion,
    pages: Iterator[Sequence[Mapping[str, Any]]],
) -> Iterator[dict[str, Any]]:
    parsed = _parsed(ledger, table)
    for page in pages:
        batches: set[int] = {row[BATCH] for row in page if row.get(BATCH) is not None}
        versions = ledger.schema_versions_of_batches(table, batches)
        for row in page:
            if row.get(DELETED_AT) is None:
                # A row that no batch wrote was there before the first version.
                yield as_version(row, parsed(versions.get(row.get(BATCH) or 0, 1)), wanted)


def _parsed(ledger: Ledger, table: LedgerRoute) -> Callable[[int], TableVersion]:
    @cache
    def parsed(number: int) -> TableVersion:
        recorded = ledger.schema_version(table, number)
        assert recorded is not None  # batches refer to it
        return TableVersion.parse(recorded.body)

    return parsed


def as_version(
    record: Mapping[str, Any], written: TableVersion, wanted: TableVersion
) -> dict[str, Any]:
    """Reads a record as a row with the names and types that the source had in version `wanted`.

    A column that the row was written without is None, or an empty array, whatever an older batch
    may have left in its attribute. A value that has no counterpart in the wanted type is None too.
    """
    return {column.source.name: _value(record, column, written, wanted) for column in wanted.live}


def _value(
    record: Mapping[str, Any], column: VersionColumn, written: TableVersion, wanted: TableVersion
) -> Any:
    holder = _holder(column, written, wanted)
    if holder is None:
        return absent(column)
    return converted(from_harper(record.get(holder.name), HarperColumn.of(holder)), holder, column)


def _holder(
    column: VersionColumn, written: TableVersion, wanted: TableVersion
) -> VersionColumn | None:
    """Finds the column in which rows of `written` hold the values of a column of `wanted`."""
    itself = written.find(column.name)
    if itself is not None and itself.is_live:
        return itself
    return next((each for each in written.live if _are_one(each, column, written, wanted)), None)


def _are_one(
    each: VersionColumn, column: VersionColumn, written: TableVersion, wanted: TableVersion
) -> bool:
    """Says whether both are the same source column, by the version that knows both attributes.

    The name alone is not enough: since a rename it may belong to another column.
    """
    own = wanted.find(each.name)
    if own is not None and own.is_live:
        return False
    if (known := written.find(column.name)) is not None:
        return each.source.name == known.source.name
    # The later of two versions has all attributes of the earlier one.
    return own is not None and own.source.name == column.source.name
