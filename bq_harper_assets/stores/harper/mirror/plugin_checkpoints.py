"""The checkpoints of Harper's BigQuery plugin say what it has ingested; they are never relied on.

The plugin's table has the name of our mirror. A row of ours names the ledger that it was copied
from; a row of the plugin's does not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.mirror.tables import CHECKPOINTS

ONLY_TABLE = "default"  # the id in the single-table form, whose checkpoints name no table


@dataclass(frozen=True)
class PluginCheckpoints:
    """Plugin checkpoints sum up all nodes; each node reads its share of rows in order of time."""

    nodes: int
    ingested: int  # by the plugin's own count; a row that was read twice counts twice
    covered_until: datetime | None  # every node has reached it; None if one does not say


def read_checkpoints(harper: HarperClient, table_id: str) -> PluginCheckpoints | None:
    """Reads the plugin's checkpoints of one contract; returns None if it has left none."""
    described = harper.describe_table(CHECKPOINTS.name)
    if described is None:
        return None
    rows = harper.search_by_value(CHECKPOINTS.name, described.primary_key, "*")
    theirs = [row for row in rows if _is_of_plugin(row) and _table_of(row) == table_id]
    if not theirs:
        return None
    times = [moment_of(row["lastTimestamp"]) for row in theirs]
    known = [moment for moment in times if moment is not None]
    return PluginCheckpoints(
        len(theirs),
        sum(int(row.get("recordsIngested") or 0) for row in theirs),
        min(known) if len(known) == len(theirs) else None,
    )


def _is_of_plugin(row: Mapping[str, Any]) -> bool:
    return row.get("derivedFrom") is None and "lastTimestamp" in row


def _table_of(row: Mapping[str, Any]) -> str:
    return str(row.get("tableId") or ONLY_TABLE)


def moment_of(text: object) -> datetime | None:
    """Parses a time; returns None if the text is not one.

    The plugin writes nine digits of a second, of which BigQuery has six.
    """
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
