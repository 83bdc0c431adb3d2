"""What became of a source's columns since the newest version, recorded as the next one."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.schema.change import Change
from bq_harper_assets.schema.changes import waiting_changes
from bq_harper_assets.schema.errors import SchemaMismatch, SchemaRefused
from bq_harper_assets.schema.table_plan import plan_table
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.sync.ledger_facts import changes_of, record_version
from bq_harper_assets.sync.source.pinned import source_schema


@dataclass(frozen=True)
class Drift:
    """What one look at a source's columns found."""

    contract: str
    version: int = 0  # newest after the look; 0: the table was never synced
    is_new: bool = False  # this look recorded it
    changes: tuple[Change, ...] = ()  # against the version before, if it is new
    waiting: tuple[Change, ...] = ()  # what is left to a person
    problem: str | None = None  # why the source cannot be followed, and what to do
    detected_after: timedelta | None = None  # at most: since the look before


def look_for_drift(
    ledger: Ledger,
    queries: Queries,
    contract: TableContract,
    by: str,
    looked_before: datetime | None = None,
) -> Drift:
    """One metadata call; a change is recorded, and whatever cannot be followed is told."""
    table = ledger.find_table(contract.id)
    newest = ledger.newest_schema(table) if table else None
    if table is None or newest is None:
        return Drift(contract.id)
    before = TableVersion.parse(newest.body)
    try:
        plan = plan_table(contract, source_schema(queries, contract), before)
    except (SchemaMismatch, SchemaRefused) as error:
        return Drift(contract.id, newest.version, problem=str(error))
    after = plan.version
    waiting = waiting_changes(after, contract)
    if after.body() == newest.body:
        return Drift(contract.id, newest.version, waiting=waiting)
    recorded = record_version(ledger, table, contract, newest, plan, by, "BigQuery changed")
    since = recorded.recorded_at - looked_before if looked_before else None
    changes = changes_of(recorded, newest, contract)
    return Drift(contract.id, recorded.version, True, changes, waiting, None, since)
