"""The judge of promises.py: the whole suite's results against docs/promises.md."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bq_harper_assets_tests.promises import PAGE, Outcomes, Promise, broken, read_promises


def test_no_promise_is_listed_twice() -> None:
    ids = [
        p.id for group in read_promises(PAGE.read_text(encoding="utf-8")).values() for p in group
    ]
    assert len(ids) == len(set(ids))


def test_a_kept_promise_without_a_passing_test_or_with_a_failing_one_is_found() -> None:
    outcomes = Outcomes()
    outcomes.named["Z99"].add("test_x")
    outcomes.passed["A2"].add("test_y")
    for shown in ("A6", "A7"):
        outcomes.passed[shown].add("test_y")
        outcomes.failed[shown] |= {"test_w", "test_v"}
    promises = [
        Promise("A1", "", "kept"),
        Promise("A2", "", "open"),
        Promise("A3", "", "partly: no sync yet"),
        Promise("A4", "", "done"),
        Promise("A5", "", "open: needs a cloud"),
        Promise("A6", "", "kept"),
        Promise("A7", "", "partly: no sync yet"),
    ]
    assert list(broken(promises, outcomes)) == [
        "A1 is called kept, and no passing test shows it",
        "A2 is called open, and test_y shows it",
        "A3 is called partly, and no passing test shows it",
        "A4 has the state 'done'; must begin with one of ('kept', 'partly', 'open')",
        "A6 is called kept, and test_v fails",
        "test_x names Z99, which docs/promises.md does not list",
    ]


def test_a_report_of_another_process_still_names_its_promises() -> None:
    sent = pytest.TestReport(
        "test_x", ("", 0, ""), {}, "passed", None, "call", promises=["A1", "A2"]
    )
    received = pytest.TestReport._from_json(json.loads(json.dumps(sent._to_json())))
    outcomes = Outcomes()
    outcomes.note(received)
    assert outcomes.passed == {"A1": {"test_x"}, "A2": {"test_x"}}


TESTS = """
import pytest

@pytest.fixture
def broken():
    raise RuntimeError

@pytest.fixture
def broken_end():
    yield
    raise RuntimeError

@pytest.mark.promise("A1", "A2", "A3", "A4", "A5")
def test_passes(): pass

@pytest.mark.promise("A2")
def test_fails(): assert False

@pytest.mark.promise("A3")
def test_has_a_broken_fixture(broken): pass

@pytest.mark.promise("A4")
def test_cannot_clean_up(broken_end): pass

@pytest.mark.promise("A5", "A6")
def test_is_skipped(): pytest.skip("why")

@pytest.mark.promise("A7")
@pytest.mark.xfail(reason="why")
def test_is_known_to_fail(): assert False
"""
FOUND = """A2 is called kept, and tests/test_judged.py::test_fails fails
A3 is called kept, and tests/test_judged.py::test_has_a_broken_fixture fails
A4 is called kept, and tests/test_judged.py::test_cannot_clean_up fails
A6 is called kept, and no passing test shows it
A7 is called kept, and no passing test shows it
"""


def _judged(tmp_path: Path, root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest in a small project of its own; the judge is the plugin of this one."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_judged.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "docs").mkdir()
    rows = "".join(f"| A{number} | It holds. | kept |\n" for number in range(1, 8))
    (tmp_path / "docs" / "promises.md").write_text(f"## A. All\n{rows}", encoding="utf-8")
    ini = "[pytest]\ntestpaths = tests\nmarkers = promise(id): shown"
    (tmp_path / "pytest.ini").write_text(ini, encoding="utf-8")
    plugin = ("-p", "bq_harper_assets_tests.promises")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, "-q", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )


IN_TWO_PROCESSES = ["-p", "xdist.plugin", "-n", "2"]


@pytest.mark.parametrize("options", [[], ["-p", "no:cacheprovider"], IN_TWO_PROCESSES])
def test_a_promise_is_kept_if_all_its_tests_pass_and_one_ran(
    tmp_path: Path, project_root: Path, options: list[str]
) -> None:
    done = _judged(tmp_path, project_root, *options)
    assert FOUND in done.stdout, done.stdout + done.stderr
    assert done.returncode == pytest.ExitCode.TESTS_FAILED


def test_a_run_in_which_no_test_fails_fails_if_a_promise_is_not_shown(
    tmp_path: Path, project_root: Path
) -> None:
    (tmp_path / "conftest.py").write_text(
        "def pytest_collection_modifyitems(items): del items[1:]", encoding="utf-8"
    )
    done = _judged(tmp_path, project_root)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert "A6 is called kept, and no passing test shows it" in done.stdout
    assert done.returncode == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    "options",
    [
        ["-k", "passes"],
        ["tests"],
        ["--deselect", "tests/test_judged.py::test_fails"],
        [*IN_TWO_PROCESSES, "tests"],
    ],
)
def test_a_part_of_the_suite_is_not_judged(
    tmp_path: Path, project_root: Path, options: list[str]
) -> None:
    done = _judged(tmp_path, project_root, *options)
    assert " passed" in done.stdout, done.stdout + done.stderr
    assert "called kept" not in done.stdout
