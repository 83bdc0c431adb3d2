"""A newer Harper than the one that set-up installs does the main job: sync, proof, and both again.

TEST_LONG_HARPER=4.7.26 tries that release, be it newer or not.
"""

import json
import os
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.local import install
from bq_harper_assets.local.install import HARPER_VERSION, PACKAGE, install_harper
from bq_harper_assets.local.node import node_tools
from bq_harper_assets.local.stack import LocalStack
from bq_harper_assets_tests.cli.typed import told
from bq_harper_assets_tests.conftest import environ_without_settings
from bq_harper_assets_tests.long.held.conftest import emulator_of, harper_of
from bq_harper_assets_tests.long.held.plain_http import PlainHarper, differences
from bq_harper_assets_tests.long.held.ships import HOUR, Ships, values
from bq_harper_assets_tests.stores.small_tables import TableRef
from bq_harper_assets_tests.temporary_project import TemporaryProject, hours_ago, table

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark, pytest.mark.registry]
NAME = "harperdb"
HOURS, ROWS = 6, 240


def npm(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Ends with what npm printed, be it done or not."""
    environ = environ_without_settings()
    tools = node_tools(environ)
    environ["PATH"] = f"{tools.node.parent}{os.pathsep}{environ['PATH']}"
    command = [*tools.npm, *arguments, "--fetch-retries=1", "--no-audit", "--no-fund"]
    return subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, check=False
    )


def newest(releases: Sequence[str], than: str) -> str | None:
    """The newest release of the same major line; None if none is newer. Previews do not count."""

    def order(release: str) -> tuple[int, ...]:
        return tuple(map(int, release.split(".")))

    whole = [each for each in releases if each.replace(".", "").isdigit()]
    newer = [
        each for each in whole if order(each)[0] == order(than)[0] and order(each) > order(than)
    ]
    return max(newer, key=order, default=None)


@pytest.fixture
def release(tmp_path: Path) -> str:
    """The one to try; the test is skipped if the registry has none, or does not answer."""
    if named := os.environ.get("TEST_LONG_HARPER"):
        return named
    answer = npm(tmp_path, "view", NAME, "versions", "--json")
    if answer.returncode:
        pytest.skip(f"npm's registry does not say which Harpers there are: {answer.stderr.strip()}")
    releases = json.loads(answer.stdout)
    found = newest(releases, HARPER_VERSION)
    if found is None:
        major = HARPER_VERSION.split(".")[0]
        pytest.skip(
            f"of Harper {major} there is nothing newer than {HARPER_VERSION}, which set-up "
            f"installs; npm's registry offers {', '.join(releases)}"
        )
    return found


@pytest.fixture
def servers(
    release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StackAddresses]:
    """The local stack on that release, which is installed as set-up installs the pinned one."""
    package = shutil.copytree(PACKAGE, tmp_path / "package")
    pin = ("install", "--package-lock-only", "--ignore-scripts", "--save-exact")
    pinned = npm(package, *pin, f"{NAME}@{release}")
    assert pinned.returncode == 0, pinned.stderr
    monkeypatch.setattr(install, "PACKAGE", package)
    monkeypatch.setattr(install, "HARPER_VERSION", release)
    root, environ = tmp_path / "newer", environ_without_settings()
    own = LocalStack(root, tmp_path / "stack", preferred={}, persistent=False, environ=environ)
    try:
        folder = install_harper(root, print, environ)
        described = (folder / "node_modules" / NAME / "package.json").read_text(encoding="utf-8")
        assert json.loads(described)["version"] == release
        yield own.up(print)
    finally:
        own.purge(print)
        shutil.rmtree(root, ignore_errors=True)  # half a gigabyte, with npm's cache


@dataclass(frozen=True)
class Job:
    """A table of ships that is synced, proved and compared, by commands that are typed."""

    ships: Ships
    harper: PlainHarper
    target: str

    def do(self, *span: str) -> None:
        """Harper then holds what the source holds, by the product's word and over plain HTTP."""
        ran = told("sync", self.target, *span)
        assert (ran["error"], ran["done"]) == (None, ran["cells"])
        proved = told("verify", self.target, "--deep", *span)
        assert {cell["status"] for cell in proved["cells"].values()} == {"proved"}
        source = self.ships.emulator.rows(self.ships.sql)
        assert differences(source, self.harper.rows(self.target), "number") == []


def test_a_newer_harper_holds_what_is_synced_and_what_is_changed(
    servers: StackAddresses,
    release: str,
    spark: object,
    tmp_path: Path,
    project_root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BQH_HOME", str(tmp_path / "project"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    print(f"set-up installs Harper {HARPER_VERSION}; this one is {release}")

    chance, start = random.Random(1), hours_ago(HOURS + 1)
    ships = Ships.made(emulator_of(servers))
    ships.insert([values(n, start + n * HOURS * HOUR / ROWS, chance) for n in range(ROWS)])
    source = TableRef(ships.emulator.project, "held", ships.name)
    project = TemporaryProject.at(tmp_path / "project", project_root, servers)
    [contract] = project.declare(table(source, start, key=["number"])).tables
    job = Job(ships, harper_of(servers), contract.target.table)
    span = ("--to", f"{start + HOURS * HOUR:%FT%H:%M}")
    job.do(*span)

    run = ships.emulator.run
    run(f"UPDATE {ships.sql} SET name = 'renamed', tags = [] WHERE MOD(number, 7) = 0")
    run(f"UPDATE {ships.sql} SET ts = TIMESTAMP_ADD(ts, INTERVAL 1 HOUR) WHERE number = 3")
    run(f"DELETE FROM {ships.sql} WHERE MOD(number, 40) = 1")
    ships.insert([values(ROWS, start, chance)])
    job.do(*span)
