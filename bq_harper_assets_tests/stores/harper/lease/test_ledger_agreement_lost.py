"""A ledger and a Harper that do not tell the same story: noticed before any write, and mended."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bq_harper_assets.stores.harper.mirror.tables import MIRRORED_LEASES
from bq_harper_assets.stores.harper.table.schema_evolution import evolve_table
from bq_harper_assets.sync.errors import OutOfStep
from bq_harper_assets_tests.stores.harper_clients import admin
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import KEYED, made
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.pair import STEP, Pair

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


@pytest.fixture
def pair(sync: Sync, tables: SmallTables, tmp_path: Path) -> Iterator[Pair]:
    with ExitStack() as opened:
        yield Pair(made(sync, tables, step=STEP, **KEYED), tmp_path, opened)


def test_an_older_ledger_that_is_put_back_is_noticed_and_every_window_compared(pair: Pair) -> None:
    pair.back_up("older.db")
    pair.change()
    pair.table.change(  # they are back as they were: the old fingerprint is right, Harper is not
        "INSERT INTO T (number, ts, name) SELECT n, TIMESTAMP_ADD(TIMESTAMP '2026-01-05',"
        " INTERVAL n SECOND), CONCAT('name ', CAST(n AS STRING))"
        f" FROM UNNEST(GENERATE_ARRAY(0, 1799, {STEP})) AS n"
    )
    pair.use("older.db")
    assert (
        "Harper's newest batch is 18, the ledger's 6; the epoch of slice 0 in Harper is 3,"
        in pair.refused("older than Harper's table")
    )
    pair.reconciled()


@pytest.mark.parametrize("without_leases", [False, True])
def test_a_ledger_that_is_lost_leads_to_comparing_and_never_to_copying(
    pair: Pair, without_leases: bool
) -> None:
    pair.change()
    if without_leases:  # as an earlier release advised
        pair.table.sync.harper.delete(MIRRORED_LEASES.name, [row["id"] for row in pair.mirror()])
    pair.table.change("DELETE FROM T WHERE number BETWEEN 3600 AND 5400")
    first = pair.ledger.identity()
    pair.use("new.db")
    said = "rows that this ledger knows nothing of" if without_leases else f"by the ledger {first}"
    pair.refused(said)
    report = pair.reconciled()
    assert sum(cell.result.deleted for cell in report.cells) == 4
    pair.use("ledger.db")  # the lost one is found: it has no say any more
    pair.refused("is kept by the ledger")


def test_a_harper_that_was_restored_from_a_backup_is_noticed(pair: Pair) -> None:
    before, rows = pair.mirror(), pair.table.sync.rows(pair.table.contract)
    pair.change()
    pair.restore_harper(before, rows)
    pair.refused("is older than the ledger")
    pair.reconciled()


def test_a_harper_without_copies_of_the_leases_is_older_too(pair: Pair) -> None:
    pair.table.sync.harper.delete(MIRRORED_LEASES.name, [row["id"] for row in pair.mirror()])
    pair.refused("is older than the ledger")


@pytest.mark.promise("A2")
def test_a_table_that_vanished_is_not_made_again_while_its_checkpoints_stay(pair: Pair) -> None:
    harper, contract = pair.table.sync.harper, pair.table.contract
    connection = pair.table.sync.stores.harper
    admin(connection, "drop_table", database="data", table=contract.target.table)
    pair.refused("Harper has no table")
    with pytest.raises(OutOfStep):
        evolve_table(pair.ledger, harper, contract)
    assert harper.describe_table(contract.target.table) is None
    report = pair.reconciled()
    assert sum(cell.result.written for cell in report.cells) == 18


def test_a_table_that_was_emptied_is_noticed(pair: Pair) -> None:
    harper, contract = pair.table.sync.harper, pair.table.contract
    harper.delete(contract.target.table, list(pair.table.held))
    pair.refused("holds no row")
