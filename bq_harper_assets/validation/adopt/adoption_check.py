"""Checks whether a Harper table that others made can be taken over, and what would change."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.stores.bigquery.fingerprint import Outside, count_outside
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.harper.answers import TableDescription
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.fitting import AttributeFit, attribute_fits, unfit
from bq_harper_assets.sync.adopt.existing_table import (
    held_outside,
    oldest_held,
    start_where_others_began,
)
from bq_harper_assets.sync.adopt.plugin_checkpoints import (
    PluginCheckpoints,
    moment_of,
    read_checkpoints,
)
from bq_harper_assets.sync.cells.window import floor_to_window
from bq_harper_assets.sync.source.pinned import Pinned, oldest_row
from bq_harper_assets.sync.turn_context import SourceReader
from bq_harper_assets.validation.adopt.adoption_notes import (
    notes_on_attributes,
    notes_on_range,
    notes_on_rows,
    unfit_rows,
)
from bq_harper_assets.validation.adopt.foreign_rows import (
    StoredSample,
    look_at_rows,
    rows_at_both_ends,
)

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Beginning:
    """A beginning says where the windows of the table will begin."""

    start: datetime | None  # None while the source has no row
    plugin: PluginCheckpoints | None


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """An inspection is all that was found out about a table; it changes nothing."""

    table: TableDescription
    attributes: tuple[AttributeFit, ...]
    beginning: Beginning
    sample: StoredSample
    is_searchable: bool  # whether Harper finds rows by ranges of the timestamp
    outside: Outside | None  # Harper's rows outside all windows; None if it cannot search for them
    problems: tuple[str, ...]  # why it does not fit
    notes: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Says whether a sync can take the table over."""
        return not self.problems

    @property
    def compared(self) -> int:
        """Estimates how many of the table's rows the first syncs will compare."""
        beyond = self.outside
        out = beyond.without_time + beyond.before_start + beyond.in_future if beyond else 0
        return max(self.table.record_count - out, 0)


def find_beginning(
    ledger: Ledger,
    queries: Queries,
    harper: HarperClient,
    contract: TableContract,
    found: TableDescription,
) -> Beginning:
    """Takes the declared or recorded start, else the plugin's, else the day of the oldest row."""
    plugin = read_checkpoints(harper, contract.id)
    known = contract.sync.start_timestamp or ledger.start_of(contract.id)
    if known is not None:
        return Beginning(floor_to_window(known, contract.window), plugin)
    oldest = oldest_row(queries, contract)
    if plugin is not None and _is_searchable(found, contract.timestamp_column):
        held = moment_of(oldest_held(harper, contract))
        if held is not None:
            return Beginning(start_where_others_began(contract, held, oldest), plugin)
    return Beginning(floor_to_window(oldest, _DAY) if oldest else None, plugin)


def inspect(
    queries: Queries,
    harper: HarperClient,
    contract: TableContract,
    pin: Pinned,
    found: TableDescription,
    beginning: Beginning,
) -> Inspection:
    """Finds out what fits and what does not, and compares some rows with the source."""
    searchable = _is_searchable(found, contract.timestamp_column)
    problems = list(unfit(found, pin.plan))
    sample, outside = StoredSample(), None
    if found.primary_key == pin.plan.primary_key:
        rows = rows_at_both_ends(harper, contract.target_table, found.primary_key)
        source = SourceReader(contract=contract, queries=queries, pin=pin)
        sample = look_at_rows(harper, source, rows, searchable=searchable)
        problems += unfit_rows(sample)
    if searchable and beginning.start:
        kind = pin.source.time_column.kind
        outside = held_outside(harper, contract, kind, beginning.start, pin.t)
    left_out = (
        count_outside(queries, pin.source, beginning.start, pin.t).before_start
        if beginning.plugin and beginning.start
        else 0
    )
    notes = (
        *notes_on_attributes(found, pin.plan),
        *notes_on_rows(contract, sample),
        *notes_on_range(beginning.plugin, outside, left_out, searchable=searchable),
    )
    return Inspection(
        table=found,
        attributes=attribute_fits(found, pin.plan),
        beginning=beginning,
        sample=sample,
        is_searchable=searchable,
        outside=outside,
        problems=tuple(problems),
        notes=notes,
    )


def _is_searchable(found: TableDescription, timestamp: str) -> bool:
    """Says whether Harper answers a range of the timestamp's texts from an index."""
    return any(
        each.name == timestamp and each.indexed and each.type in (None, "String", "ID")
        for each in found.attributes
    )


def adoption_json(inspection: Inspection) -> dict[str, Any]:
    """Returns what an inspection found as programs read it."""
    found, sample, plugin = inspection.table, inspection.sample, inspection.beginning.plugin
    start = inspection.beginning.start
    until = plugin.covered_until if plugin else None
    return {
        "fits": inspection.fits,
        "problems": list(inspection.problems),
        "notes": list(inspection.notes),
        "primary_key": found.primary_key,
        "rows": found.record_count,
        "rows_compared": inspection.compared,
        "start": start.isoformat() if start else None,
        "attributes": [
            {
                "name": each.name,
                "planned": each.planned,
                "there": each.there,
                "indexed": each.indexed,
                "holding": each.holding.value,
                "why": each.why,
            }
            for each in inspection.attributes
        ],
        "sample": {name: getattr(sample, name) for name in sample.__dataclass_fields__},
        "plugin": plugin
        and {
            "nodes": plugin.nodes,
            "ingested": plugin.ingested,
            "covered_until": until.isoformat() if until else None,
        },
    }
