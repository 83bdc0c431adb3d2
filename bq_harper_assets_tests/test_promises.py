"""Runs last: the whole suite's results against docs/promises.md."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bq_harper_assets_tests.promises import OUTCOMES, PAGE, Outcomes, Promise, broken, read_promises


def test_every_promise_called_kept_is_shown_by_a_passing_test(
    request: pytest.FixtureRequest,
) -> None:
    outcomes = request.config.stash[OUTCOMES]
    if not outcomes.is_whole_suite:
        pytest.skip(
            "only a part of the tests was asked for; promises are judged on the whole suite"
        )
    promises = [
        p for group in read_promises(PAGE.read_text(encoding="utf-8")).values() for p in group
    ]
    assert promises
    assert list(broken(promises, outcomes)) == []


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


JUDGED = """
import pytest

@pytest.fixture
def broken():
    raise RuntimeError

@pytest.mark.promise("A1")
def test_passes(): pass

@pytest.mark.promise("A2")
def test_fails(): assert False

@pytest.mark.promise("A3")
def test_has_a_broken_fixture(broken): pass

@pytest.mark.promise("A4")
def test_is_skipped(): pytest.skip("why")

def test_they_are_told_apart(request):
    from bq_harper_assets_tests.promises import OUTCOMES
    outcomes = request.config.stash[OUTCOMES]
    assert (set(outcomes.passed), set(outcomes.failed)) == ({"A1"}, {"A2", "A3"})
"""


def test_what_passes_fails_and_is_skipped_is_told_apart_also_without_pytests_cache(
    tmp_path: Path, project_root: Path
) -> None:
    (tmp_path / "test_judged.py").write_text(JUDGED, encoding="utf-8")
    options = ["-p", "bq_harper_assets_tests.promises", "-p", "no:cacheprovider", "-q"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-c", "/dev/null", str(tmp_path)],
        cwd=project_root,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 2 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "1 error" in done.stdout
