"""A declared table whose columns change, synced by Dagster runs and looked at by the sensor."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bq_harper_assets.defs.resources import build_resources
from bq_harper_assets.defs.runs.launch import Launched, launch
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.routes.bigquery_to_harper import Stores
from bq_harper_assets_tests.defs.drifting import Drifting, LedgerClock
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.evolving import DAY, OLDER, Evolving, source_of_days
from bq_harper_assets_tests.temporary_project import TemporaryProject, table

if TYPE_CHECKING:  # whose fixtures make what is here
    from bq_harper_assets_tests.defs.conftest import Dagster


@dataclass(frozen=True)
class EvolvingProject:
    """A project of one table; `source` changes it, reads it back and proves it."""

    dagster: "Dagster"
    sensor: Drifting
    source: Evolving
    declared: dict[str, Any]

    @classmethod
    def made(
        cls,
        dagster: "Dagster",
        project: TemporaryProject,
        tables: SmallTables,
        ledger: Ledger,
        clock: LedgerClock,
        columns: str,
        **declared: Any,
    ) -> "EvolvingProject":
        """Nothing is synced yet."""
        source, today = source_of_days(tables, columns)
        fixed = {"window": "1d", "slices": 1, "safetyLag": "0s", "key": "number"}
        contract = table(source, today + OLDER * DAY, **fixed | declared)
        loaded = project.declare(contract)
        spark = build_resources(loaded)["spark"].spark_session
        sync = Sync(Stores(loaded.bigquery, loaded.harper, ledger), spark, dagster.harper)
        evolving = Evolving(
            sync=sync, tables=tables, source=source, contract=loaded.tables[0], today=today
        )
        return cls(dagster, Drifting(dagster=dagster, clock=clock), evolving, contract)

    def redeclared(self, project: TemporaryProject, **declared: Any) -> "EvolvingProject":
        """The same table and sensor, under a contract that says something else too."""
        contract = self.declared | declared
        evolving = replace(self.source, contract=project.declare(contract).tables[0])
        sensor = Drifting(dagster=self.dagster, clock=self.sensor.clock, cursor=self.sensor.cursor)
        return EvolvingProject(self.dagster, sensor, evolving, contract)

    def sync(self, *days: int) -> Launched:
        """These days and those between them, in one run."""
        cells = self.source.cells(*days)
        definitions = self.sensor.definitions
        launched = launch(definitions, self.dagster.instance, self.source.contract, cells)
        assert launched.error is None, launched.error
        return launched
