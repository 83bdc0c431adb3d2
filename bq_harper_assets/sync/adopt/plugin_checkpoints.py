"""What Harper's BigQuery plugin says it has ingested: read from its checkpoints, never believed.

Its table has the name of our mirror. A row of ours names the ledger that it was copied from; one
of the plugin's does not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.mirror.tables import CHECKPOINTS

ONLY_TABLE = "default"  # the contract of the single-table form, whose checkpoints name no table


@dataclass(frozen=True)
class PluginCheckpoints:
    """Of all nodes: each has taken its share of the rows, in the order of time."""

    nodes: int
    ingested: int  # by its own count, in which a row that was read twice counts twice
    covered_until: datetime | None  # where every node has come to; None if one does not say


def read_checkpoints(harper: HarperClient, table_id: str) -> PluginCheckpoints | None:
    """Those of one contract; None if the plugin has left none."""
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
    """None if it is none. The plugin writes nine digits of a second, of which BigQuery has six."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
