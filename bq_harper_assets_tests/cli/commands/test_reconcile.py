"""`bqh reconcile`: what a user types when the ledger and Harper do not tell the same story."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.settings.addresses import read_addresses, write_addresses
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.errors import OutOfStep
from bq_harper_assets_tests.cli.commands.test_verify import named_rows
from bq_harper_assets_tests.cli.typed import told, typed, typed_well
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.harper_clients import admin
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    HOUR,
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


def held(harper_connection: HarperConnection, target: str) -> set[int]:
    with HarperClient(harper_connection) as harper:
        return {row["number"] for row in harper.search_by_value(target, "ts", "*", ("number",))}


def lost(ledger: Path) -> None:
    """With what SQLite keeps beside it."""
    for path in ledger.parent.glob(f"{ledger.name}*"):
        path.unlink()


def copied(ledger: Path, to: Path) -> None:
    """As a tool for backups would, while it is in use."""
    with closing(sqlite3.connect(ledger)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)


@contextmanager
def bigquery_away(project: TemporaryProject) -> Iterator[None]:
    """BigQuery listens, and has no other answer than 503."""
    folder = local_folder(project.root)
    there = read_addresses(folder)
    assert there is not None
    with FaultProxy(there.bigquery_url) as between:
        between.on(Answer(503, {"error": {"message": "away"}}), times=10_000)
        write_addresses(folder, there.model_copy(update={"bigquery_url": between.url}))
        try:
            yield
        finally:
            write_addresses(folder, there)


@pytest.mark.promise("A2")
def test_a_lost_ledger_and_a_lost_table_are_told_and_mended_by_one_command(
    project: TemporaryProject, tables: SmallTables, harper_connection: HarperConnection
) -> None:
    start = hours_ago(4)
    source = tables.make_from(numbered_rows(start, 40))
    # Without a start of its own: a new ledger finds one, by the oldest row that is left.
    ships = table(source, start, key=["number"], sync=None, slices=1, live=False)
    name, target = ships["id"], ships["targetTable"]
    project.declare(ships)
    tables.run(
        f"INSERT INTO {source.sql} (number, ts) VALUES"
        f" (1000, TIMESTAMP '{start - 48 * HOUR:%F %T}+00')"
    )
    typed_well("sync", name)
    assert held(harper_connection, target) == {*range(40), 1000}

    tables.run(f"DELETE FROM {source.sql} WHERE number IN (3, 1000)")
    url = load_project(project.root).ledger.url.get_secret_value()
    lost(Path(url.removeprefix("sqlite:///")))
    assert "is kept by the ledger" in str(typed("sync", name).exception)
    assert 3 in held(harper_connection, target)
    lost(Path(url.removeprefix("sqlite:///")))  # with the start that the sync has found
    project.declare(ships | {"sync": {"giveUpAfter": "3s"}})
    with bigquery_away(project):
        refused = str(typed("reconcile", name).exception)
    project.declare(ships)
    assert "failed while looking for the oldest row" in refused
    with open_ledger(url) as ledger:  # a start that was guessed would stay
        assert (ledger.start_of(name), ledger.find_route(name)) == (None, None)
    assert "rows" in typed_well("reconcile", name)
    assert held(harper_connection, target) == set(range(40)) - {3}
    span = ("--to", f"{start + 3 * HOUR:%FT%H:%M}")  # an hour may close meanwhile
    assert told("verify", name, "--deep", *span)["verdict"] == "equal"

    admin(harper_connection, "drop_table", database="data", table=target)
    said = str(typed("sync", name).exception)
    assert said.startswith(f"Harper has no table {target}")
    assert said.endswith(f"type: bqh reconcile {name}")
    [finding] = [
        each for each in told("doctor", code=1)["findings"] if each["subject"] == f"table {name}"
    ]
    assert (finding["verdict"], finding["detail"]) == ("fail", said)
    typed_well("reconcile", name)
    assert held(harper_connection, target) == set(range(40)) - {3}
    typed_well("verify", name, "--deep", *span)


def test_an_older_ledger_is_told_first_by_verify_and_status_and_repair_refuses(
    project: TemporaryProject, tables: SmallTables
) -> None:
    start = hours_ago(4)
    source = tables.make_from(named_rows(start))
    [ships] = project.declare(table(source, start, key=["number"], slices=1, live=False)).tables
    name, span = ships.id, ("--to", f"{start + 2 * HOUR:%FT%H:%M}")
    typed_well("sync", name, *span)
    url = load_project(project.root).ledger.url.get_secret_value()
    now, older = Path(url.removeprefix("sqlite:///")), project.root / "older.db"
    copied(now, older)
    assert "out of step" not in typed_well("verify", name, *span)
    assert "out of step" not in typed_well("status", name)
    tables.run(f"UPDATE {source.sql} SET name = 'later' WHERE number = 5")
    typed_well("sync", name, "--changed", *span)
    lost(now)
    copied(older, now)

    why = f"the ledger is older than Harper's table {ships.target_table}"
    said = typed_well("verify", name, *span, code=3).splitlines()
    assert said[0].startswith(f"{name} is out of step: {why}")
    assert said[0].endswith(f"type: bqh reconcile {name}")
    assert said[-1] == f"{name} is out of step, as said above; type: bqh reconcile {name}"
    assert "bqh repair" not in "\n".join(said)
    assert "bqh sync" not in "\n".join(said)
    assert told("verify", name, *span, code=3)["out_of_step"].startswith(why)
    equal = ("--from", f"{start + HOUR:%FT%H:%M}", *span)
    assert "rows differ" not in typed_well("verify", name, *equal, code=4)
    refused = typed("repair", name)
    assert isinstance(refused.exception, OutOfStep), refused.output
    assert str(refused.exception).startswith(why)
    shown = typed_well("status", name)
    _, first, *_ = shown.partition(f"{name} -> ")[2].splitlines()
    assert first.startswith(f"  out of step: {why}")
    assert "bqh sync" not in shown

    lost(now)
    for command in ("verify", "repair"):
        assert "is kept by the ledger" in str(typed(command, name).exception)
    shown = typed_well("status", name)
    assert "is kept by the ledger" in shown
    assert "bqh sync" not in shown
