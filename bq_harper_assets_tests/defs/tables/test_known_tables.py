"""Definitions load whether or not BigQuery, Harper and the ledger are there."""

import json
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey, Definitions, MultiPartitionsDefinition

from bq_harper_assets.contract.fields.quantities import WINDOW_MINUTES
from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.defs.build import build_definitions
from bq_harper_assets.defs.partitions import newest_closed
from bq_harper_assets.defs.tables.known_tables import (
    LEDGER_ANSWERS_WITHIN_S,
    StartsCopy,
    known_tables,
)
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets_tests.conftest import environ_without_settings
from bq_harper_assets_tests.temporary_project import TemporaryProject

START = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)
FOUND = {
    "id": "found",
    "dataset": "shop",
    "table": "orders",
    "timestampColumn": "ts",
    "targetTable": "Found",
    "slices": 2,
}
DECLARED = FOUND | {
    "id": "declared",
    "table": "sales",
    "targetTable": "Declared",
    "sync": {"startTimestamp": "2026-01-07T10:30:00Z"},
}


@pytest.fixture
def project(tmp_path: Path, project_root: Path, nowhere: str) -> TemporaryProject:
    """Two tables, one without a start; nothing listens where its servers are said to be."""
    password = tmp_path / "password"
    password.write_text("secret", encoding="ascii")
    addresses = StackAddresses(
        harper_url=nowhere,
        harper_rest_url=nowhere,
        harper_user="HDB_ADMIN",
        harper_password_file=password,
        bigquery_url=nowhere,
        bigquery_storage=nowhere.removeprefix("http://"),
        bigquery_project="local",
    )
    made = TemporaryProject.at(tmp_path / "project", project_root, addresses)
    made.declare(FOUND, DECLARED)
    return made


@pytest.fixture
def silent_server() -> Iterator[str]:
    """A PostgreSQL address that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"postgresql://bqh:secret@127.0.0.1:{server.getsockname()[1]}/ledger"


def name_ledger(project: TemporaryProject, url: str) -> None:
    profile = project.root / "config" / "profiles" / "local.yaml"
    text = profile.read_text(encoding="utf-8")
    url = url.replace("bqh:secret@", "bqh@")  # a password in a profile is refused
    profile.write_text(text.replace("sqlite:///.local/ledger.db", url), encoding="utf-8")


def record(project: TemporaryProject, name: str, start: datetime) -> None:
    with open_ledger(load_project(project.root).ledger.url) as ledger:
        ledger.record_start(name, start)


def starts(project: TemporaryProject) -> dict[str, datetime]:
    return {name: table.start for name, table in known_tables(load_project(project.root)).items()}


def first_key(definitions: Definitions, target: str) -> str:
    partitions = definitions.resolve_asset_graph().get(AssetKey(["harper", target])).partitions_def
    assert isinstance(partitions, MultiPartitionsDefinition)
    return str(partitions.get_first_partition_key())


def validate(project: TemporaryProject, tmp_path: Path) -> tuple[Any, float]:
    home = tmp_path / "dagster"
    home.mkdir(exist_ok=True)
    began = time.monotonic()
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("dagster")),
            *("definitions", "validate", "-m", "bq_harper_assets.definitions"),
        ],
        cwd=project.root,
        env={
            **environ_without_settings(),
            "BQH_HOME": str(project.root),
            "DAGSTER_HOME": str(home),
            "DAGSTER_DISABLE_TELEMETRY": "1",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done, time.monotonic() - began


def test_dagster_validates_the_definitions_with_all_three_servers_away(
    project: TemporaryProject, tmp_path: Path, silent_server: str
) -> None:
    name_ledger(project, silent_server)
    done, seconds = validate(project, tmp_path)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "definitions are loaded without the ledger" in said
    assert "secret" not in said
    assert seconds < 120  # nearly all of it is Python's imports


def test_loading_waits_two_seconds_for_a_ledger_that_says_nothing(
    project: TemporaryProject, silent_server: str, caplog: pytest.LogCaptureFixture
) -> None:
    name_ledger(project, silent_server)
    loaded = load_project(project.root)
    began = time.monotonic()
    known = known_tables(loaded)
    assert time.monotonic() - began < LEDGER_ANSWERS_WITHIN_S + 1.5
    assert known["declared"].start == datetime(2026, 1, 7, 10, tzinfo=UTC)
    assert "has not answered within 2 s" in caplog.text


def test_loading_makes_no_ledger_and_says_that_the_start_is_not_known_yet(
    project: TemporaryProject, caplog: pytest.LogCaptureFixture
) -> None:
    before = sorted(local_folder(project.root).rglob("*"))
    with caplog.at_level(logging.WARNING):
        definitions = build_definitions(project.root)
    assert sorted(local_folder(project.root).rglob("*")) == before
    assert not caplog.records
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    start = starts(project)["found"]
    assert start in (today - 2 * DAY, today - 3 * DAY)  # it may have become midnight
    [found] = [each for each in load_project(project.root).tables if each.id == "found"]
    for minutes in WINDOW_MINUTES:
        # What the schedule asks for is a partition here, and in a process that loads a day later.
        asked = newest_closed(
            found.model_copy(update={"window": timedelta(minutes=minutes)}), datetime.now(UTC)
        )
        assert asked.start >= start + DAY
    described = {
        spec.key.path[-1]: spec.description or ""
        for spec in definitions.resolve_all_asset_specs()
        if spec.key.path[0] == "harper"
    }
    assert "Reload the code location" in described["Found"]
    assert "bqh sync found" in described["Found"]
    assert "Reload" not in described["Declared"]


def test_partitions_begin_where_the_ledger_or_the_contract_says(project: TemporaryProject) -> None:
    record(project, "found", START)
    definitions = build_definitions(project.root)
    assert first_key(definitions, "Found") == "2026-01-05T00:00|s00"
    assert first_key(definitions, "Declared") == "2026-01-07T10:00|s00"


def test_the_copy_serves_while_the_ledger_is_away_and_only_its_own(
    project: TemporaryProject, tmp_path: Path
) -> None:
    record(project, "found", START)
    assert starts(project)["found"] == START
    ledger = local_folder(project.root) / "ledger.db"
    ledger.rename(tmp_path / "away.db")
    assert starts(project)["found"] == START
    assert not ledger.exists()
    name_ledger(project, f"sqlite:///{tmp_path}/another.db")
    assert starts(project)["found"] > START


def test_the_copy_is_private_and_follows_the_ledger(project: TemporaryProject) -> None:
    record(project, "found", START)
    starts(project)
    file = StartsCopy.of(load_project(project.root)).file
    assert file.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in file.parent.iterdir()] == [file.name]
    with open_ledger(load_project(project.root).ledger.url) as opened:
        opened.begin_earlier("found", START - DAY)
        assert starts(project)["found"] == START - DAY
    assert json.loads(file.read_text(encoding="utf-8")) == {"found": (START - DAY).isoformat()}


@pytest.mark.parametrize("text", ["", "[1]", '{"found": 7}', '{"found": "soon"}'])
def test_a_copy_that_cannot_be_read_is_no_copy(project: TemporaryProject, text: str) -> None:
    file = StartsCopy.of(load_project(project.root)).file
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    assert starts(project)["found"] > START
    record(project, "found", START)
    assert starts(project)["found"] == START
