"""Compares some rows that somebody else wrote into Harper with what a sync would write."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.stores.bigquery.source import Pinned
from bq_harper_assets.stores.harper.answers import require_ids
from bq_harper_assets.stores.harper.client import HarperClient, Row
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.stores.harper.reading.deep_hash import record_hash, records_of
from bq_harper_assets.stores.harper.reading.record_comparison import differing_columns
from bq_harper_assets.stores.harper.reading.target_rows import text_of
from bq_harper_assets.stores.harper.schema import attributes_of
from bq_harper_assets.stores.harper.types import HarperType
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.grid import Part
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.diff.rows_by_id import named_rows
from bq_harper_assets.sync.source.cell_rows import read_here
from bq_harper_assets.sync.turn_context import SourceReader
from bq_harper_assets.validation.spot.source_sample import rows_at, uncrowded
from bq_harper_assets.validation.subject import stored_instant

ROWS_FROM_EACH_END = 50
_SEARCHES = 5  # for rows whose time has another form
_SECOND = timedelta(seconds=1)
_EVER = Window(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


@dataclass(frozen=True, kw_only=True)
class StoredSample:
    """A stored sample describes some rows of the table; counts from `equal` on need a time."""

    rows: int = 0
    lost: str = ""  # a time by which a search does not find the row that has it
    other_type: str = ""  # an id that is a number where a sync writes text, or the reverse
    equal: int = 0
    changed: int = 0
    other_id: int = 0  # has the values of a source row, under another id
    not_in_source: int = 0  # no source row at that time has the id or the values
    crowded: int = 0  # not compared: too many source rows have this time


def rows_at_both_ends(harper: HarperClient, table: str, primary_key: str) -> list[Row]:
    """Fetches the first and the last rows by id, each row once."""
    ends = (
        harper.search_by_value(table, primary_key, "*", limit=ROWS_FROM_EACH_END, reverse=reverse)
        for reverse in (False, True)
    )
    rows = [row for end in ends for row in end]
    ids = require_ids(rows, primary_key, "search_by_value", table)
    return list({str(row_id): row for row_id, row in zip(ids, rows, strict=True)}.values())


def look_at_rows(
    harper: HarperClient,
    source: SourceReader,
    pin: Pinned,
    rows: Sequence[Row],
    *,
    searchable: bool,
) -> StoredSample:
    """Describes the rows; `searchable` says whether Harper has an index of the timestamp yet."""
    plan, kind = source.rows, pin.plan.selection.timestamp.kind
    times = [stored_instant(kind, row.get(plan.timestamp)) for row in rows]
    odd = [
        (row, moment)
        for row, moment in zip(rows, times, strict=True)
        if moment is None or text_of(kind, moment) != row[plan.timestamp]
    ]
    odd = [(row, moment) for row, moment in odd if row.get(plan.timestamp) is not None]
    timed = [(r, moment) for r, moment in zip(rows, times, strict=True) if moment is not None]
    compared = _compared(source, pin, timed)
    return StoredSample(
        rows=len(rows),
        lost=_lost(harper, pin.plan, kind, odd, searchable=searchable),
        other_type=_other_type(pin.plan, rows),
        **compared,
    )


def _lost(
    harper: HarperClient,
    plan: TablePlan,
    kind: Kind,
    odd: Sequence[tuple[Row, datetime | None]],
    *,
    searchable: bool,
) -> str:
    """Finds a time by which Harper does not find its row: a date that Harper only shows as text."""
    name = plan.selection.timestamp.name
    for row, moment in odd[:_SEARCHES]:
        if moment is None or not searchable:
            return str(row[name])
        second = moment.replace(microsecond=0)
        bounds = [text_of(kind, second), text_of(kind, second + _SECOND)]
        if kind is Kind.DATE:
            bounds = [text_of(kind, second), text_of(kind, second + timedelta(days=1))]
        found = harper.search_by_conditions(
            plan.table, [Condition(name, "gelt", bounds)], (plan.primary_key,)
        )
        ids = require_ids(found, plan.primary_key, "search_by_conditions", plan.table)
        if row[plan.primary_key] not in ids:
            return str(row[name])
    return ""


def _other_type(plan: TablePlan, rows: Iterable[Row]) -> str:
    is_text = attributes_of(plan)[0].type is HarperType.STRING
    ids = (row[plan.primary_key] for row in rows if plan.primary_key in row)
    return next((repr(each) for each in ids if isinstance(each, str) is not is_text), "")


def _compared(
    source: SourceReader, pin: Pinned, timed: Sequence[tuple[Row, datetime]]
) -> Mapping[str, int]:
    plan = source.rows
    counts = rows_at(pin.queries, pin.source, {moment for _, moment in timed})
    readable = uncrowded(counts)
    records: dict[Any, Mapping[str, Any]] = {}
    if readable:
        # Others may have written rows of any time, so one window has them all.
        cells = [Cell(_EVER, number) for number in range(source.contract.slices)]
        reading = source.reading_at(
            readable,
            {cell: Part.whole(cell, 1) for cell in cells},
            has_equal_rows=not plan.key and any(counts[moment] > 1 for moment in readable),
        )
        named = (
            row for rows in read_here(reading) for row in named_rows(rows, records_of(rows, plan))
        )
        records = {row.id: row.record for row in named if row.reason is None}
    values = {record_hash(record, plan) for record in records.values()}
    counted = Counter[str]()
    for row, moment in timed:
        expected = records.get(row.get(plan.primary_key))
        if moment not in readable:
            counted["crowded"] += 1
        elif expected is not None:
            differs = differing_columns(expected, row, plan.columns)
            counted["changed" if differs else "equal"] += 1
        else:
            counted["other_id" if record_hash(row, plan) in values else "not_in_source"] += 1
    return counted
