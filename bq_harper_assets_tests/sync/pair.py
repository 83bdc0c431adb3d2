"""A synced table, and the ledgers and Harpers that may fall out of step with each other over it."""

import sqlite3
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.records import Mode
from bq_harper_assets.stores.harper.lease.full_reconcile import distrust_everything
from bq_harper_assets.stores.harper.mirror.tables import MIRRORED_LEASES
from bq_harper_assets.sync.errors import OutOfStep
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets_tests.sync.changing_table import DAY, THREE, Table

STEP = 600  # six rows in each hour
CHANGES = (
    "DELETE FROM T WHERE number < 1800",
    "UPDATE T SET name = 'changed' WHERE number = 3600",
    "INSERT INTO T (number, ts, name) VALUES (7, TIMESTAMP '2026-01-05 00:00:07', 'late')",
)


@dataclass
class Pair:
    """A table, and ledgers that take turns."""

    table: Table
    folder: Path
    opened: ExitStack

    @property
    def ledger(self) -> Ledger:
        return self.table.sync.stores.ledger

    def use(self, name: str) -> None:
        """Another ledger from now on."""
        ledger = self.opened.enter_context(open_ledger(f"sqlite:///{self.folder / name}"))
        stores = replace(self.table.sync.stores, ledger=ledger)
        self.table.sync = replace(self.table.sync, stores=stores)

    def back_up(self, name: str) -> None:
        """As a tool for backups would, while it is in use."""
        with (
            sqlite3.connect(self.folder / "ledger.db") as source,
            sqlite3.connect(self.folder / name) as target,
        ):
            source.backup(target)
        source.close()
        target.close()

    def mirror(self) -> list[dict[str, Any]]:
        """Harper's copies of the leases."""
        target = self.table.contract.target.table
        ids = [f"{target}|s{number:02}" for number in range(2)]
        found = self.table.sync.harper.search_by_id(
            MIRRORED_LEASES.name, ids, tuple(MIRRORED_LEASES.types)
        )
        return sorted(found, key=lambda row: str(row["id"]))

    def change(self) -> None:
        """Rows go, and a sync; rows change and come, and another."""
        for statements in (CHANGES[:1], CHANGES[1:]):
            for statement in statements:
                self.table.change(statement)
            self.table.run()

    def refused(self, saying: str) -> str:
        """A run says so before it has written anything."""
        rows, mirror = self.table.held if self._is_there() else None, self.mirror()
        with pytest.raises(OutOfStep, match=saying) as caught:
            self.table.run()
        assert (self.table.held if self._is_there() else None, self.mirror()) == (rows, mirror)
        assert "Nothing was written" in str(caught.value)
        assert str(caught.value).endswith(f"bqh reconcile {self.table.contract.id}")
        return str(caught.value)

    def restore_harper(self, mirror: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
        """As it was when these were read."""
        harper, contract = self.table.sync.harper, self.table.contract
        harper.delete(
            contract.target.table, [row["number"] for row in self.table.sync.rows(contract)]
        )
        harper.upsert(contract.target.table, rows)
        harper.upsert(MIRRORED_LEASES.name, mirror)

    def reconciled(self) -> TurnReport:
        """By what the command does."""
        sync, contract = self.table.sync, self.table.contract
        distrust_everything(self.ledger, sync.harper, contract, sync.stores.bigquery, DAY, THREE)
        report = self.table.run(deep=True)
        assert {cell.mode for cell in report.cells} == {Mode.RECONCILE}
        assert self.table.held == self.table.wanted
        assert {cell.result.written for cell in self.table.run().cells} == {0}
        return report

    def _is_there(self) -> bool:
        target = self.table.contract.target.table
        return self.table.sync.harper.describe_table(target) is not None
