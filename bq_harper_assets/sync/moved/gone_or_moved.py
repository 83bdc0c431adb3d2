"""A row that only the target has in a cell is gone from the source or in another window there."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import Any

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import micros_at
from bq_harper_assets.stores.bigquery.key_lookup import KEYS_PER_QUERY, key_text, times_of_keys
from bq_harper_assets.stores.bigquery.materialised_query import query_of
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.harper.answers import require_ids
from bq_harper_assets.stores.harper.client import IDS_PER_REQUEST, HarperClient
from bq_harper_assets.sync.plan.cell_work import LaterRow, Vanished
from bq_harper_assets.sync.source.pinned import Pinned, asked_again
from bq_harper_assets.sync.values.row_plan import RowPlan


def find_vanished(
    queries: Queries,
    harper: HarperClient,
    contract: TableContract,
    pin: Pinned,
    start: datetime,
    ids: Sequence[Any],
) -> Vanished:
    """Separates rows that are gone from the source from rows that are in another window at T.

    A row without a key is gone. A row with a key is looked up in all windows from `start`. If its
    time is NULL, before the start or after T, no window has it, so that it is gone too.
    """
    if not pin.plan.selection.key or not ids:
        return Vanished(list(ids))
    times = times_of_rows(queries, harper, contract, pin, pin.source.sql, ids)
    elsewhere = _in_windows(times, start, pin.t)
    return Vanished([row_id for row_id in ids if row_id not in elsewhere], elsewhere)


def find_later(
    queries: Queries,
    harper: HarperClient,
    contract: TableContract,
    pin: Pinned,
    start: datetime,
    ids: Sequence[Any],
    keep: ExitStack,
) -> dict[Any, LaterRow]:
    """Runs a contract's query again for rows that its kept result of some windows does not have.

    The new result is kept too, until `keep` is closed: the rows are then written as they are in it.
    """
    if not pin.plan.selection.key:
        return {}
    query = f"({query_of(contract, queries.connection.project, pin.names)})"
    # Most keys return no row, so the cheap query for their times comes before the one for rows.
    there = list(times_of_rows(queries, harper, contract, pin, query, ids)) if ids else []
    found: dict[Any, LaterRow] = {}
    for first in range(0, len(there), KEYS_PER_QUERY):
        some = there[first : first + KEYS_PER_QUERY]
        texts = [text for text in _key_texts(harper, contract, pin, some) if text is not None]
        again = keep.enter_context(asked_again(queries, contract, pin, texts))
        times = times_of_rows(queries, harper, contract, again, again.source.sql, some)
        in_windows = _in_windows(times, start, again.t)
        found |= {row_id: LaterRow(micros, again) for row_id, micros in in_windows.items()}
    return found


def _in_windows(times: Mapping[Any, int | None], start: datetime, end: datetime) -> dict[Any, int]:
    first, last = micros_at(start), micros_at(end)
    return {i: time for i, time in times.items() if time is not None and first <= time <= last}


def times_of_rows(
    queries: Queries,
    harper: HarperClient,
    contract: TableContract,
    pin: Pinned,
    origin: str,
    ids: Sequence[Any],
) -> dict[Any, int | None]:
    """Returns the time of each row in `origin`, in microseconds, without rows that it lacks."""
    texts = _key_texts(harper, contract, pin, ids)
    known = [row_id for row_id, text in zip(ids, texts, strict=True) if text is not None]
    columns = {column.name: column for column in pin.plan.selection.columns}
    times = times_of_keys(
        queries,
        origin,
        pin.source.row_filter,
        [columns[name] for name in pin.plan.selection.key],
        pin.plan.selection.timestamp,
        [text for text in texts if text is not None],
        table=contract.id,
    )
    return {known[at]: time for at, time in times.items()}


def _key_texts(
    harper: HarperClient, contract: TableContract, pin: Pinned, ids: Sequence[Any]
) -> list[list[str] | None]:
    """Returns the key of each row as text; None if Harper has no such row, or no key in it."""
    if RowPlan.of(pin.plan).id_column is not None:
        return [[key_text(row_id)] for row_id in ids]
    key = pin.plan.selection.key
    primary = pin.plan.primary_key
    held: dict[Any, dict[str, Any]] = {}
    for first in range(0, len(ids), IDS_PER_REQUEST):
        some = ids[first : first + IDS_PER_REQUEST]
        rows = harper.search_by_id(contract.target_table, some, (primary, *key))
        found = require_ids(rows, primary, "search_by_id", contract.target_table)
        held.update(zip(found, rows, strict=True))
    texts: list[list[str] | None] = []
    for row_id in ids:
        values = [held.get(row_id, {}).get(name) for name in key]
        texts.append(None if None in values else [key_text(value) for value in values])
    return texts
