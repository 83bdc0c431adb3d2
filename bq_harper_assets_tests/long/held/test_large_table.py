"""A large table in one run: every row arrives as it is, and memory does not grow with the rows."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from dagster import RunsFilter

from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.local.stack import LocalStack
from bq_harper_assets_tests.conftest import environ_without_settings
from bq_harper_assets_tests.defs.bqh_apart import bqh_apart
from bq_harper_assets_tests.long.held.conftest import Sizes, emulator_of, harper_of
from bq_harper_assets_tests.long.held.memory import Look, Peaks, part, watched
from bq_harper_assets_tests.long.held.plain_http import Emulator, Row, differences
from bq_harper_assets_tests.stores.small_tables import TableRef
from bq_harper_assets_tests.temporary_project import HOUR, TemporaryProject, hours_ago, table

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
SLICES = 8
ROWS_AT_ONCE = 20_000
WITHIN_S = 3_600.0  # of a machine that does other things too
LEASE_S = 180.0  # as long as in real use
MOST_GROWTH = 1.2  # of a peak of memory, from the first third of the time to the last
ROWS_TO_JUDGE = 500_000  # with fewer of them the workers still start in the first third


@pytest.fixture
def servers(tmp_path: Path, project_root: Path) -> Iterator[StackAddresses]:
    """Of its own, so that so many rows do not stay in the emulator that other tests use."""
    own = LocalStack(
        project_root,
        tmp_path / "stack",
        preferred={},
        persistent=False,
        environ=environ_without_settings(),
    )
    try:
        yield own.up(print)
    finally:
        own.purge(print)


@dataclass(frozen=True)
class LargeSource:
    """A table of the emulator whose rows are evenly spread over hours; some values are NULL."""

    emulator: Emulator
    start: datetime
    rows: int
    hours: int

    @property
    def reference(self) -> TableRef:
        """As a contract names it."""
        return TableRef(self.emulator.project, "held", "large")

    def make(self) -> None:
        """By one query: the emulator copies the whole table with each write."""
        step = self.hours * HOUR // timedelta(microseconds=1) // self.rows
        self.emulator.run(
            "CREATE TABLE held.large AS SELECT n AS number, TIMESTAMP_ADD("
            f" TIMESTAMP '{self.start:%F %T}+00', INTERVAL n * {step} MICROSECOND) AS ts,"
            " CONCAT('ship ', CAST(n AS STRING)) AS name, n / 7 AS speed, MOD(n, 3) = 0 AS docked,"
            " IF(MOD(n, 10) = 0, NULL, CONCAT('berth ', CAST(MOD(n, 999) AS STRING))) AS berth"
            f" FROM UNNEST(GENERATE_ARRAY(0, {self.rows - 1})) AS n"
        )

    def between(self, first: int, last: int) -> list[Row]:
        """As one text of many lines: the emulator is slow where an answer has many cells."""
        columns = (
            "CAST(number AS STRING)",
            "CAST(UNIX_MICROS(ts) AS STRING)",
            "name",
            "CAST(speed AS STRING)",
            "IF(docked, 'yes', 'no')",
            "IFNULL(berth, '')",
        )
        line = ", '\\t', ".join(columns)
        told = self.emulator.run(
            f"SELECT STRING_AGG(CONCAT({line}), '\\n') FROM held.large"
            f" WHERE number BETWEEN {first} AND {last}"
        )
        [[text]] = [[cell["v"] for cell in row["f"]] for row in told["rows"]]
        return [_row(*line.split("\t")) for line in text.split("\n")]


def _row(number: str, micros: str, name: str, speed: str, docked: str, berth: str) -> Row:
    """As Harper should hold it."""
    ts = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(micros))
    return {
        "number": int(number),
        "ts": f"{ts:%Y-%m-%dT%H:%M:%S}.{ts.microsecond:06}Z",
        "name": name,
        "speed": float(speed),
        "docked": docked == "yes",
        "berth": berth or None,
    }


def test_a_large_table_is_exact_after_one_run_and_memory_stays_flat(
    tmp_path: Path,
    project_root: Path,
    servers: StackAddresses,
    sizes: Sizes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = sizes.of("ROWS", short=100_000, full=2_000_000)
    hours = sizes.of("ROW_HOURS", short=25, full=125)
    cells = hours * SLICES
    monkeypatch.setenv("BQH_HOME", str(tmp_path / "project"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    monkeypatch.setenv("PYTHONPATH", str(project_root))
    source = LargeSource(emulator_of(servers), hours_ago(hours + 1), rows, hours)
    source.make()
    project = TemporaryProject.at(tmp_path / "project", project_root, servers)
    declared = table(source.reference, source.start, key=["number"], slices=SLICES)
    [contract] = project.declare(declared).tables

    log, began = tmp_path / "sync.log", time.monotonic()
    span = ("--to", f"{source.start + hours * HOUR:%FT%H:%M}")
    with (
        bqh_apart(log, "sync", contract.id, *span, lease_s=LEASE_S) as typed,
        watched(typed.pid, log) as looks,
    ):
        code = typed.wait(WITHIN_S)
    said = log.read_text(encoding="utf-8")
    print(f"{said}the whole command took {time.monotonic() - began:.0f} s")
    assert code == 0
    assert f"proof: {cells:,} cells: {cells:,} proved" in said
    with project_instance(project.root) as instance:
        assert len(instance.get_runs(RunsFilter(job_name=f"sync_{contract.id}"))) == 1

    harper = harper_of(servers)
    for first in range(0, rows, ROWS_AT_ONCE):
        last = min(first + ROWS_AT_ONCE, rows) - 1
        wanted = source.between(first, last)
        assert len(wanted) == last + 1 - first
        stored = harper.rows_between(contract.target.table, first, last)
        assert differences(wanted, stored, "number") == []
    assert harper.rows_between(contract.target.table, None, -1) == []
    assert harper.rows_between(contract.target.table, rows, None) == []
    print(f"{rows:,} rows are equal; with their comparison {time.monotonic() - began:.0f} s")
    grown = [name for name, each in _peaks(looks, cells).items() if each.growth > MOST_GROWTH]
    assert rows < ROWS_TO_JUDGE or not grown, f"more than {MOST_GROWTH} times as much: {grown}"


def _peaks(looks: list[Look], cells: int) -> dict[str, Peaks]:
    """Of the driver over the whole run; of the workers while they write, and while they prove."""
    all_done = f"{cells:,} of {cells:,} cells done"
    writing = part(looks, "writing rows of", all_done)
    proving = part(looks, f"proving {cells:,} cells", "writing check results")
    peaks = {
        "driver": Peaks.of([look.driver for look in part(looks, "writing rows of", "proof:")]),
        "workers that write": Peaks.of([look.workers for look in writing]),
        "workers that prove": Peaks.of([look.workers for look in proving]),
    }
    for name, each in peaks.items():
        print(f"{name}: {each}")
    return peaks
