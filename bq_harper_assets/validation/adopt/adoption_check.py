"""Checks whether a Harper table that others made can be taken over, and what would change."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import floor_to_day, floor_to_window
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.stores.bigquery.fingerprint import Outside, count_outside
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.source import Pinned, oldest_row
from bq_harper_assets.stores.harper.answers import TableDescription
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.mirror.plugin_checkpoints import (
    PluginCheckpoints,
    moment_of,
    read_checkpoints,
)
from bq_harper_assets.stores.harper.table.fitting import (
    AttributeFit,
    attribute_fits,
    is_seen,
    read_back_by,
    undeclared,
    unfit,
)
from bq_harper_assets.stores.harper.target import HarperTarget
from bq_harper_assets.sync.cells.cut import TimeCut
from bq_harper_assets.sync.turn_context import SourceReader
from bq_harper_assets.validation.adopt.existing_table import (
    COUNTED,
    held_outside,
    oldest_held,
    start_where_others_began,
)
from bq_harper_assets.validation.adopt.foreign_rows import (
    StoredSample,
    look_at_rows,
    rows_at_both_ends,
)


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
    problems: tuple[str, ...]  # why it does not fit
    notes: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Says whether a sync can take the table over."""
        return not self.problems


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
    return Beginning(floor_to_day(oldest) if oldest else None, plugin)


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
        rows = rows_at_both_ends(harper, contract.target.table, found.primary_key)
        target = HarperTarget(contract, harper)
        source = SourceReader(
            contract=contract, cut=TimeCut(contract.window), pin=pin, target=target
        )
        sample = look_at_rows(harper, source, pin, rows, searchable=searchable)
        problems += _unfit_rows(sample)
    if searchable and beginning.start:
        kind = pin.plan.selection.timestamp.kind
        outside = held_outside(harper, contract, kind, beginning.start, pin.t)
    left_out = (
        count_outside(queries, pin.source, beginning.start, pin.t).before_start
        if beginning.plugin and beginning.start
        else 0
    )
    return Inspection(
        table=found,
        attributes=attribute_fits(found, pin.plan),
        beginning=beginning,
        sample=sample,
        is_searchable=searchable,
        problems=tuple(problems),
        notes=tuple(_notes(found, pin.plan, outside, left_out)),
    )


def _unfit_rows(sample: StoredSample) -> Iterator[str]:
    """Says why the sync would never compare rows that the table holds."""
    if sample.lost:
        yield (
            f"rows have a timestamp such as {sample.lost} by which no window will find them: it is"
            " a date or number there, or no time at all, and windows are ranges of texts such as"
            " 2026-11-16T07:00:00.000000Z"
        )
    if sample.other_type:
        ours = "numbers" if sample.other_type[0] in "'\"" else "texts"
        yield f"rows have ids such as {sample.other_type}, and a sync's would be {ours}"


def _notes(
    found: TableDescription, plan: TablePlan, outside: Outside | None, left_out: int
) -> Iterator[str]:
    """Says what a user must know of a table that fits: what to declare, and which rows stay out."""
    if not is_seen(found):
        yield "the role of this login is shown no attributes, so nothing is known of their types"
    if added := undeclared(found, read_back_by(plan)):
        yield (
            f"declare {', '.join(added)} where the table is declared, the timestamp @indexed: rows"
            " are read back by them, and what a sync adds is lost when a component is loaded again"
        )
    required = {attribute.name for attribute in found.attributes if attribute.required}
    if null := [c.name for c in plan.selection.columns if c.name in required and not c.required]:
        yield f"rows in which {' or '.join(null)} is NULL go to quarantine: it is required there"
    counts = (outside.without_time, outside.before_start, outside.in_future) if outside else ()
    if any(counts):
        more = "at least " if max(counts) > COUNTED else ""
        yield f"{more}{sum(counts):,} rows of Harper lie outside all windows, and stay as they are"
    if left_out:
        yield (
            f"{left_out:,} rows of BigQuery are older than the first window, which begins where"
            " the plugin began; sync.startTimestamp takes them in"
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
        "start": start.isoformat() if start else None,
        "attributes": [asdict(each) for each in inspection.attributes],
        "sample": asdict(sample),
        "plugin": plugin
        and {
            "nodes": plugin.nodes,
            "ingested": plugin.ingested,
            "covered_until": until.isoformat() if until else None,
        },
    }
