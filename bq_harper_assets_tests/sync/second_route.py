"""The second route: a source in the emulator, a SQLite file that takes a turn at once, and turns.

Tests take it by time and by key, kill turns of it, and let the leases of dead ones expire.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.questions.status import CellRecord
from bq_harper_assets.ledger.records import BatchState, LedgerRoute
from bq_harper_assets.ledger.store.columns import duration_micros
from bq_harper_assets.ledger.store.database import Database
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.key_range import KeyCut
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets.sync.lease.keeper import LEASE_LASTS, Keeper
from bq_harper_assets.sync.ledger_facts import cell_key, recorded_cells
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets.sync.turn.turn import Turn
from bq_harper_assets.validation.proof.cell_proof import CellProof
from bq_harper_assets.validation.proof.prover import Prover
from bq_harper_assets.validation.verdict import ProofStatus
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import DAY, THREE
from bq_harper_assets_tests.sync.sql_target import BigQueryToSql, connected

if TYPE_CHECKING:
    from bq_harper_assets_tests.sync.conftest import Sync


BOUNDS = ("3600", "7200")  # of the numbers of an hour's rows


class Died(Exception):
    """The process is gone."""


@dataclass(frozen=True, kw_only=True)
class SecondRoute:
    """A source in the emulator, a SQLite file, and the turns between them."""

    sync: "Sync"
    tables: SmallTables
    source: TableRef
    route: BigQueryToSql
    ledger_url: str

    @property
    def contract(self) -> TableContract:
        return self.route.contract

    def change(self, statement: str) -> None:
        """With T for the table's name."""
        self.tables.run(statement.replace(" T ", f" {self.source.sql} "))

    def run(self, cells: Sequence[Cell] | None = None, **settings: Any) -> TurnReport:
        """A turn of all cells, or of some."""
        return Turn(
            route=self.route,
            spark=self.sync.spark,
            run_id="second",
            retry=self.sync.retry,
            **settings,
        ).sync(cells or self.cells)

    @property
    def cells(self) -> list[Cell]:
        """Of the three hours, or of the key ranges that have the same rows."""
        cut = self.route.cut
        hours = windows_between(DAY, THREE, self.contract.window)
        ranges = cut.ranges if isinstance(cut, KeyCut) else tuple(hours)
        return [Cell(each, number) for each in ranges for number in range(self.contract.slices)]

    def proofs(self, **settings: Any) -> set[ProofStatus]:
        """What the proof of every cell says."""
        return {proof.status for proof in self.proved(**settings)}

    def proved(self, **settings: Any) -> list[CellProof]:
        """The proof of every cell."""
        prover = Prover(self.route, self.sync.spark, self.sync.retry)
        return prover.prove(self.cells, **settings)

    @property
    def held(self) -> dict[int, str]:
        """Name by number, as the file has them."""
        asked = "SELECT body ->> 'number', body ->> 'name' FROM held"
        with connected(self.route.file) as sql:
            return {int(number): name for number, name in sql.execute(asked)}

    @property
    def wanted(self) -> dict[int, str]:
        """The same of the source."""
        rows = self.tables.queries.run(f"SELECT * FROM {self.source.sql}", doing="reading").rows
        return {row["number"]: row["name"] for row in rows}

    @property
    def turns(self) -> int:
        """How often the file has taken something."""
        with connected(self.route.file) as sql:
            count: int = sql.execute("SELECT COUNT(*) FROM turns").fetchone()[0]
            return count

    @property
    def staged(self) -> int:
        """How many rows and removals wait in the file to be taken."""
        both = "SELECT (SELECT COUNT(*) FROM staged) + (SELECT COUNT(*) FROM leaving)"
        with connected(self.route.file) as sql:
            count: int = sql.execute(both).fetchone()[0]
            return count

    def batches(self, state: BatchState) -> int:
        """How many batches the ledger has in that state."""
        ledger, table = self.route.ledger, self.table
        return sum(
            each.state == state
            for cell in self.cells
            for each in ledger.history(table, cell_key(cell))
        )

    def records(self) -> list[CellRecord]:
        """What the ledger has of each cell."""
        return list(recorded_cells(self.route.ledger, self.table, self.cells).values())

    @property
    def table(self) -> LedgerRoute:
        table = self.route.ledger.find_route(self.contract.id)
        assert table is not None
        return table

    def let_leases_expire(self) -> None:
        """As if the ledger's clock had gone on for as long as a lease lasts."""
        database = Database(SecretStr(self.ledger_url))
        with database.writing() as connection:
            sooner = text("UPDATE leases SET expires_at = expires_at - :us")
            connection.execute(sooner, {"us": duration_micros(LEASE_LASTS + timedelta(seconds=1))})
        database.close()

    @contextmanager
    def killed_in(self, patch: pytest.MonkeyPatch, owner: type, verb: str) -> Iterator[None]:
        """The turn in the block dies when it calls the verb; its leases stay until they expire."""
        with patch.context() as dying:
            dying.setattr(owner, verb, _dies)
            dying.setattr(Keeper, "__exit__", _ends_no_lease)
            with pytest.raises(Died):
                yield


def _dies(*args: Any, **named: Any) -> None:
    raise Died


def _ends_no_lease(self: Keeper, *exc: Any) -> None:
    self._ended.set()
