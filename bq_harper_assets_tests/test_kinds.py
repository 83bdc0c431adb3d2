"""`pytest -m unit`, integration, faults and live each select something, and miss nothing."""

import os
import subprocess
import sys

import pytest

from bq_harper_assets_tests.conftest import PROJECT_ROOT
from bq_harper_assets_tests.kinds import PARTS
from bq_harper_assets_tests.live.conftest import SWITCH, WHY
from bq_harper_assets_tests.promises import is_whole_suite

# Few and quick to collect, with several kinds among them.
SOME = [
    "bq_harper_assets_tests/test_promises.py",
    "bq_harper_assets_tests/ledger/test_processes.py",
    "bq_harper_assets_tests/test_fault_proxy.py",
]


def _pytest(*options: str) -> str:
    environ = {name: value for name, value in os.environ.items() if name != SWITCH}
    command = [sys.executable, "-m", "pytest", "-q", *options]
    ended = subprocess.run(
        command, cwd=PROJECT_ROOT, env=environ, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.promise("E7")
def test_every_test_belongs_to_one_part(request: pytest.FixtureRequest) -> None:
    selected = set[str]()
    for item in request.session.items:
        marks = [mark.name for mark in item.iter_markers()]
        assert len([mark for mark in marks if mark in PARTS]) == 1, item.nodeid
        if "harper" in marks or "bigquery" in marks or "spark" in marks:
            assert "integration" in marks, item.nodeid
        selected.update(marks)
    if is_whole_suite(request.config):
        assert {*PARTS, "faults"} <= selected


@pytest.mark.promise("E7")
def test_a_kind_selects_by_what_a_test_does() -> None:
    listed = _pytest("--collect-only", "-m", "faults and integration", *SOME)
    chosen = {line.rpartition("/")[2] for line in listed.splitlines() if "::" in line}
    assert {test.split("::")[0] for test in chosen} == {"test_processes.py", "test_fault_proxy.py"}
    killed = [test for test in chosen if test.startswith("test_processes.py")]
    assert all("[postgresql" in test for test in killed)  # on SQLite it needs no server


@pytest.mark.promise("E7")
def test_the_live_part_is_skipped_with_what_to_set() -> None:
    assert WHY in " ".join(_pytest("-m", "live", "bq_harper_assets_tests/live").split())


def test_long_tests_run_only_when_they_are_asked_for() -> None:
    tests = PROJECT_ROOT / "bq_harper_assets_tests"
    looked_at = {tests / "test_promises.py", tests / "long" / "held" / "test_ties.py"}
    others = {*tests.glob("*/"), *tests.glob("test_*.py"), *(tests / "long").rglob("test_*.py")}
    ignored = others - looked_at - {tests / "long"}
    some = ["--collect-only", str(tests), *(f"--ignore={each}" for each in ignored)]
    assert "/long/held/test_ties" not in _pytest(*some)
    assert "/long/held/test_ties" in _pytest("-m", "long", *some)
