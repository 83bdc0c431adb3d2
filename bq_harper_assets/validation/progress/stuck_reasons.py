"""Finds why a table is stuck or seems so: wrong copies of its checkpoints, or keys that collide."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.questions.progress import Checkpoint
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.bigquery.source import pinned
from bq_harper_assets.stores.harper.mirror.checkpoints import checkpoint_id
from bq_harper_assets.stores.harper.mirror.tables import CHECKPOINTS
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.errors import KeyNotUnique
from bq_harper_assets.sync.ledger_facts import version_of
from bq_harper_assets.validation.subject import Subject, instant_of


def diagnose(subject: Subject, table: LedgerRoute, points: Sequence[Checkpoint]) -> Iterator[str]:
    """Says what is wrong with Harper's copies of the checkpoints; a copy may be older."""
    ids = {checkpoint_id(table.name, point.slice): point for point in points}
    try:
        rows = subject.harper.search_by_id(CHECKPOINTS.name, list(ids), ("*",))
    except BqhError:
        return  # there is no copy yet, or Harper does not answer, which other checks report
    origin = f"ledger {subject.ledger.identity()}"
    for row in rows:
        if problem := _problem(row, ids[row["id"]].until, origin):
            yield (
                f"the row {row['id']} of {CHECKPOINTS.name} {problem}. It is only a copy: nothing "
                "is lost, and the next run writes it again"
            )


def colliding_keys(
    subject: Subject, table: LedgerRoute, start: datetime, end: datetime
) -> Iterator[str]:
    """Finds two rows with one key in [start, end): no turn writes there until they differ."""
    before = version_of(subject.ledger.newest_schema(table))
    try:
        with pinned(subject.queries, harper_plan, subject.contract, start, end, before) as pin:
            pin.require_unique_key()
    except KeyNotUnique as error:
        yield str(error)
    except BqhError:
        return  # BigQuery does not answer, or its columns do not fit, which other checks report


def _problem(row: dict[str, Any], until: datetime, origin: str) -> str | None:
    told = row.get("lastTimestamp")
    if row.get("derivedFrom") != origin:
        return f"was not written by this project's {origin}"
    try:
        moment = instant_of(Kind.TIMESTAMP, told or "")
    except (TypeError, ValueError):
        return f"has the lastTimestamp {told!r}, which is no time"
    if moment > until:
        return f"says {told}, and the ledger says {until.isoformat()}"
    return None
