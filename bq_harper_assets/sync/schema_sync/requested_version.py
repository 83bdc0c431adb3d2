"""A person can ask for a version that syncs what waits, or the columns of an earlier version."""

from dataclasses import dataclass

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute, SchemaVersion
from bq_harper_assets.schema.change import Change
from bq_harper_assets.schema.changes import changes_between, waiting_changes
from bq_harper_assets.schema.evolution import applied, rolled_back
from bq_harper_assets.schema.schema_rules import policy_of
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.sync.ledger_facts import record_version
from bq_harper_assets.sync.protocols import Source
from bq_harper_assets.sync.schema_sync.version_history import version_named


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A decision is the version that would be next, or is next if it was recorded."""

    changes: tuple[Change, ...]
    waiting: tuple[Change, ...]  # what it still leaves to a person
    version: int  # the newest; the one before if nothing was recorded
    is_recorded: bool
    schema: TableVersion


@dataclass(frozen=True)
class Deciding:
    """Makes decisions about one table's schema; without `record` they are only shown."""

    ledger: Ledger
    source: Source
    contract: TableContract
    by: str

    def apply(self, *, record: bool) -> Decision:
        """Syncs waiting columns from now on, but for those that the contract freezes."""
        table, newest = version_named(self.ledger, self.contract)
        current = self._planned(TableVersion.parse(newest.body)).version
        sources = {
            column.source.name
            for column in current.waiting
            if policy_of(self.contract, column.source.name) != "freeze"
        }
        return self._decided(table, newest, applied(current, sources), "applied", record)

    def roll_back(self, to: int, *, record: bool) -> Decision:
        """Syncs the columns of an earlier version from now on; columns added since then wait."""
        table, newest = version_named(self.ledger, self.contract)
        _, earlier = version_named(self.ledger, self.contract, to)
        current = self._planned(TableVersion.parse(newest.body)).version
        after = rolled_back(current, TableVersion.parse(earlier.body))
        return self._decided(table, newest, after, f"rollback to {to}", record)

    def _decided(
        self,
        table: LedgerRoute,
        newest: SchemaVersion,  # on which the decision is based: a newer one is an error
        wanted: TableVersion,
        cause: str,
        record: bool,
    ) -> Decision:
        plan = self._planned(wanted)  # with the indexes that its columns get
        after = plan.version
        version = newest.version
        if record:
            recorded = record_version(
                self.ledger, table, self.contract, newest, plan, self.by, cause
            )
            version = recorded.version
        return Decision(
            changes=changes_between(TableVersion.parse(newest.body), after, self.contract),
            waiting=waiting_changes(after, self.contract),
            version=version,
            is_recorded=version != newest.version,
            schema=after,
        )

    def _planned(self, before: TableVersion) -> TablePlan:
        return self.source.planned(self.contract, before)
