"""What held when the product was tried from outside: both servers, one Spark, a ledger per test."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets_tests.fault_proxy import FaultProxy
from bq_harper_assets_tests.long.conftest import HowLong
from bq_harper_assets_tests.long.held.plain_http import Emulator, PlainHarper
from bq_harper_assets_tests.temporary_project import TemporaryProject

DATASET = "held"
NO_LIMIT = 10**9
T = TypeVar("T")


@dataclass(frozen=True)
class Sizes:
    """How much of it: as TEST_LONG says, unless the environment names a number of its own."""

    how_long: HowLong

    def of(self, name: str, *, short: int, full: int) -> int:
        """TEST_LONG_<name>, or the number that fits."""
        fitting = self.how_long.choose(short=short, full=full)
        return int(os.environ.get(f"TEST_LONG_{name}", fitting))

    def in_time(self, wanted: Sequence[T], name: str, *, full_s: int) -> Iterator[T]:
        """Each of them. In short all are played; in full, what time cuts off is a failure."""
        over = time.monotonic() + self.of(name, short=NO_LIMIT, full=full_s)
        for number, each in enumerate(wanted):
            if number and time.monotonic() > over:
                left = ", ".join(map(str, wanted[number:]))
                pytest.fail(f"within TEST_LONG_{name} only {number} were played, and not: {left}")
            yield each


@pytest.fixture(scope="session")
def sizes(how_long: HowLong) -> Sizes:
    """Of each scenario."""
    return Sizes(how_long)


def emulator_of(addresses: StackAddresses) -> Emulator:
    """Over plain HTTP, with a dataset for the sources."""
    emulator = Emulator(addresses.bigquery_url, addresses.bigquery_project)
    emulator.make_dataset(DATASET)
    return emulator


def harper_of(addresses: StackAddresses) -> PlainHarper:
    """Over plain HTTP, and never through a proxy."""
    password = addresses.harper_password_file.read_text(encoding="ascii")
    return PlainHarper(addresses.harper_url, addresses.harper_user, password)


@pytest.fixture(scope="session")
def emulator(stack: StackAddresses) -> Emulator:
    """The source."""
    return emulator_of(stack)


@pytest.fixture(scope="session")
def plain_harper(stack: StackAddresses) -> PlainHarper:
    """The target."""
    return harper_of(stack)


@pytest.fixture
def project(
    tmp_path: Path, project_root: Path, stack: StackAddresses, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TemporaryProject]:
    """Whose commands are typed in this process, where Spark is running already."""
    monkeypatch.setenv("BQH_HOME", str(tmp_path / "project"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    with FaultProxy(stack.harper_url) as proxy:
        addresses = stack.model_copy(update={"harper_url": proxy.url})
        yield TemporaryProject.at(tmp_path / "project", project_root, addresses)
