"""Picks rows of Harper at random instants."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from random import Random
from typing import Any

import pyarrow as pa

from bq_harper_assets.stores.harper.answers import require_ids
from bq_harper_assets.stores.harper.client import HarperClient, Row
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.stores.harper.reading.target_rows import text_of
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.slicing import id_hashes, slice_of
from bq_harper_assets.sync.turn_context import SourceReader
from bq_harper_assets.validation.spot.sampled_cells import Commits, instants

ROWS_PER_SEARCH = 50  # some of them may belong to other slices
_SEARCHES = 2  # at least, per window: a page of rows of one time may have no row of some slice


def harper_rows(
    harper: HarperClient,
    source: SourceReader,
    commits: Commits,
    wanted: Mapping[Cell, int],
    chance: Random,
) -> Iterator[tuple[Cell, Row]]:
    """Picks so many rows of Harper in each cell; a page of one window serves all its slices."""
    plan = source.rows
    by_window: dict[tuple[datetime, datetime], dict[int, Cell]] = {}
    for cell in wanted:
        by_window.setdefault((cell.window.start, commits[cell].upto), {})[cell.slice] = cell
    for (start, until), cells in by_window.items():
        left = {part: wanted[cell] for part, cell in cells.items()}
        seen: set[Any] = set()
        for instant in instants(start, until, max(_SEARCHES, *left.values()), chance):
            if not any(left.values()):
                break
            page: dict[int, list[Row]] = {}
            for row in _page(harper, source, (start, instant, until)):
                ids = pa.array([row[plan.primary_key]])  # one alone, since any two may differ
                hashes = id_hashes(ids, keyless=not plan.key)
                part = int(slice_of(hashes, source.contract.slices)[0])
                page.setdefault(part, []).append(row)
            for part, rows in page.items():
                # Any row of equal times is picked: the first by id would always be the same.
                row = chance.choice(
                    [r for r in rows if r[plan.timestamp] == rows[0][plan.timestamp]]
                )
                if left.get(part) and row[plan.primary_key] not in seen:
                    seen.add(row[plan.primary_key])
                    left[part] -= 1
                    yield cells[part], row


def _page(
    harper: HarperClient, source: SourceReader, span: tuple[datetime, datetime, datetime]
) -> list[Row]:
    """Fetches rows of Harper from the second instant on, else from the first, before the third."""
    plan, kind = source.rows, source.pin.plan.selection.timestamp.kind
    start, middle, end = (text_of(kind, moment) for moment in span)
    for bounds in ([middle, end], [start, middle]):
        target, where = source.contract.target.table, " to ".join(bounds)
        page = harper.search_by_conditions(
            target,
            [Condition(plan.timestamp, "gelt", bounds)],
            sort_by=plan.timestamp,
            limit=ROWS_PER_SEARCH,
            cell=where,
        )
        require_ids(page, plan.primary_key, "search_by_conditions", target, where)
        if page:
            return page
    return []
