"""Worlds on the real servers; what they log of faults that were asked for is left out."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets_tests.history.script import WORLDS
from bq_harper_assets_tests.history.stand_ins import made_world
from bq_harper_assets_tests.history.world import Servers, World
from bq_harper_assets_tests.stores.small_tables import SmallTables


@pytest.fixture(scope="session")
def servers(
    bigquery_connection: BigQueryConnection, harper_connection: HarperConnection
) -> Servers:
    """Both."""
    tables = SmallTables.at(bigquery_connection)
    return Servers(bigquery_connection, harper_connection, tables)


@pytest.fixture
def quiet() -> Iterator[None]:
    """Warnings of retries would fill pages."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def keyed(servers: Servers, tmp_path: Path, quiet: None) -> Iterator[World]:
    """A table with a key and one slice."""
    with made_world(servers, tmp_path, WORLDS["keyed"]) as world:
        yield world


@pytest.fixture
def keyless(servers: Servers, tmp_path: Path, quiet: None) -> Iterator[World]:
    """A table without a key, and one slice."""
    with made_world(servers, tmp_path, WORLDS["keyless"]) as world:
        yield world


@pytest.fixture
def sliced(servers: Servers, tmp_path: Path, quiet: None) -> Iterator[World]:
    """A table with a key and two slices."""
    with made_world(servers, tmp_path, WORLDS["sliced"]) as world:
        yield world


@pytest.fixture
def flagging(servers: Servers, tmp_path: Path, quiet: None) -> Iterator[World]:
    """A table with a key whose lost rows are marked as deleted."""
    with made_world(servers, tmp_path, WORLDS["flagging"]) as world:
        yield world


@pytest.fixture
def keeping(servers: Servers, tmp_path: Path, quiet: None) -> Iterator[World]:
    """A table with a key whose lost rows are kept."""
    with made_world(servers, tmp_path, WORLDS["keeping"]) as world:
        yield world


@pytest.fixture
def keyless_sliced(servers: Servers, tmp_path: Path, quiet: None) -> Iterator[World]:
    """A table without a key, and two slices."""
    with made_world(servers, tmp_path, WORLDS["keyless_sliced"]) as world:
        yield world
