"""`bqh doctor` lists the sync's own tables in Harper, before the first sync and after it."""

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.stores.harper.answers import Attribute
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.mirror.tables import LOCKS, MIRROR_TABLES
from bq_harper_assets_tests.cli.typed import told, typed_well
from bq_harper_assets_tests.stores.harper.mirror.test_tables import (
    assert_as_declared,
    drop_system_tables,
)
from bq_harper_assets_tests.stores.harper_clients import admin
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "500")


def _listed() -> list[str]:
    """What the terminal shows of them, with what to do next on the same line."""
    text = typed_well("doctor").replace("\n     next:", " next:")
    names = tuple(f"harper: {each.name}:" for each in MIRROR_TABLES)
    return [line.rstrip() for line in text.splitlines() if line[5:].startswith(names)]


@pytest.mark.spark
@pytest.mark.promise("A11")
def test_the_first_sync_of_an_empty_harper_makes_them_all_and_doctor_shows_their_version(
    project: TemporaryProject, harper_connection: HarperConnection, tables: SmallTables
) -> None:
    start = hours_ago(2)
    ships = table(tables.make_from(numbered_rows(start, 5)), start, slices=1)
    project.declare(ships)
    drop_system_tables(harper_connection)
    assert _listed() == [
        f"ok   harper: {each.name}: not there yet: the first sync makes it"
        for each in MIRROR_TABLES
    ]
    typed_well("sync", ships["id"])
    assert_as_declared(harper_connection)
    shown = _listed()
    known = {each["name"]: each for each in told("doctor")["systemTables"]}
    assert list(known) == [each.name for each in MIRROR_TABLES]
    for each, line in zip(MIRROR_TABLES, shown, strict=True):
        one = known[each.name]
        assert (one["version"], one["state"], one["lacking"]) == (each.version, "present", [])
        assert set(one["attributes"]) == set(each.types)
        layout = f"version {each.version} of its layout: {', '.join(one['attributes'])}"
        assert line == f"ok   harper: {each.name}: {layout}"


@pytest.mark.promise("A11")
def test_one_that_somebody_else_has_made_is_a_warning_that_names_what_it_lacks(
    project: TemporaryProject, harper_connection: HarperConnection, tables: SmallTables
) -> None:
    start = hours_ago(2)
    project.declare(table(tables.make_from(numbered_rows(start, 5)), start))
    drop_system_tables(harper_connection)
    with HarperClient(harper_connection) as harper:
        harper.create_table(
            LOCKS.name, "lockId", [Attribute(name="lockId"), Attribute(name="nodeId")]
        )
    try:
        (shown,) = [line for line in _listed() if LOCKS.name in line]  # exit code 0: a warning
    finally:
        admin(harper_connection, "drop_table", database="data", table=LOCKS.name)
    assert shown == (
        f"warn harper: SchemaLock: lacks acquiredAt, expiresAt of version {LOCKS.version} of its"
        " layout next: syncs do not need it. If it is no other tool's, drop it: the ledger has"
        " what it shows, and the next copy makes it anew"
    )


def test_a_harper_that_cannot_be_asked_lists_none(
    project: TemporaryProject, tables: SmallTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = hours_ago(2)
    project.declare(table(tables.make_from(numbered_rows(start, 5)), start))
    monkeypatch.setenv("OPERATIONSAPI_PASS", "wrong")
    report = told("doctor", code=1)
    assert report["systemTables"] == []
    assert not [f for f in report["findings"] if LOCKS.name in f["subject"]]
