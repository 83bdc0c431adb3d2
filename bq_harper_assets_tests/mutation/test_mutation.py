"""The tool itself: what tests notice is noticed, what they do not notice is told."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bq_harper_assets_tests.mutation import __main__ as program
from bq_harper_assets_tests.mutation.changes import Mutable
from bq_harper_assets_tests.mutation.equivalents import EQUIVALENTS, Equivalent
from bq_harper_assets_tests.mutation.forks import Survivor, Tried

MODULE = """
LIMIT = 10

def is_too_much(rows):
    return rows > LIMIT

def not_negative(rows):
    return max(rows, 0)

def countdown(rows):
    while rows > 0:
        rows -= 1
    return rows

def untried(rows):
    return not rows
"""
TESTS = """
from planted.limits import countdown, is_too_much, not_negative

def test_more_than_ten_is_too_much():
    assert (is_too_much(10), is_too_much(11)) == (False, True)

def test_a_number_stays(tmp_path):
    assert not_negative(5) == 5

def test_a_countdown_ends_at_zero():
    assert countdown(1) == 0
"""
TRY = """
import sys
from pathlib import Path
from bq_harper_assets_tests.mutation import forks
forks.LEAST_CPU_SECONDS = 1
root = Path.cwd()
tried = forks.try_changes("planted.limits", ("test_limits.py",), root, root)
print(tried.changes)
for each in tried.survivors:
    print(each.before, "->", each.after, each.is_reached)
"""


def _changes(source: str) -> list[str]:
    return [f"{each.before} -> {each.after}" for each in Mutable(source, "m.py").changes]


def _planted(tests: str, folder: Path, root: Path) -> subprocess.CompletedProcess[str]:
    (folder / "planted").mkdir()
    (folder / "planted" / "limits.py").write_text(MODULE, encoding="utf-8")
    (folder / "test_limits.py").write_text(tests, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    environ = {"PYTHONPATH": f"{folder}:{root}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [sys.executable, "-c", TRY],
        cwd=folder,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_survivor_is_told_and_what_tests_notice_is_not(
    tmp_path: Path, project_root: Path
) -> None:
    done = _planted(TESTS, tmp_path, project_root)
    # The loop that would not end is noticed by the time it takes, and LIMIT when it is imported.
    assert done.stdout.splitlines() == [
        str(len(_changes(MODULE))),
        "0 -> 1 True",
        "return not rows -> return None False",
        "not rows -> rows False",
    ], done.stdout + done.stderr


def test_tests_that_fail_without_a_change_are_an_error(tmp_path: Path, project_root: Path) -> None:
    done = _planted("def test_fails(): assert False", tmp_path, project_root)
    assert "TestsDoNotPass" in done.stderr
    assert "test_limits.py::test_fails fails" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        ("a < b", ["a < b -> a <= b"]),
        ("a is not None and b in c", ["a is not None and b in c -> a is not None or b in c"]),
        ("x = a + 1", ["a + 1 -> a - 1", "1 -> 2"]),
        ("x = -y", ["-y -> y"]),
        ("x = True", ["True -> False"]),
        ("x = sorted(y, key=z)", ["sorted(y, key=z) -> list(y)"]),
        ("x = any(y)", ["any(y) -> all(y)"]),
        ("if a: b()", ["a -> not a", "b() -> pass"]),
        ("x.y = z", ["x.y = z -> pass"]),
        ("def f(): return x", ["return x -> return None"]),
        ("def f(): yield x", ["yield x -> if False:\n    yield x"]),
        ("def f():\n for x in y: continue", ["continue -> pass"]),
        ("def f(): raise E(1 + 1)", ["raise E(1 + 1) -> pass"]),
        # What is left alone.
        ("x: tuple[int, 3] = 'text'", []),
        ("@slots(True)\ndef f(): pass", []),
        ("zip(a, b, strict=True)", ["zip(a, b, strict=True) -> pass"]),
        ("_log.info(1 + 1)", []),
        ("assert a < b", []),
        ("x = f'{a + 1}'", []),
    ],
)
def test_what_is_changed(source: str, changes: list[str]) -> None:
    assert _changes(source)[: len(changes) or None] == changes


def _tried(changes: int, survivors: int) -> Tried:
    lost = tuple(Survivor(line, f"z(x{line})", f"x{line}", "y", True) for line in range(survivors))
    return Tried(changes, lost, 1.0)


@pytest.mark.parametrize(("survivors", "is_enough"), [(5, True), (6, False)])
def test_five_of_a_hundred_may_survive(
    survivors: int, is_enough: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.report({"a": _tried(50, 0), "b": _tried(50, survivors)}, 1.0) is is_enough
    assert f"{1 - survivors / 100:.1%}" in capsys.readouterr().out.splitlines()[3]


def test_a_survivor_that_is_called_equivalent_does_not_count_unless_there_are_many(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    equal = [Equivalent("a", f"z(x{line})", f"x{line}", "y", "why") for line in range(6)]
    monkeypatch.setattr(program, "EQUIVALENTS", equal)
    assert program.report({"a": _tried(120, 6)}, 1.0)
    assert not program.report({"a": _tried(119, 6)}, 1.0)
    assert "more than 5% of all changes are called equivalent" in capsys.readouterr().out


def test_a_change_that_is_called_equivalent_and_is_noticed_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "EQUIVALENTS", [Equivalent("a", "other(x0)", "x0", "y", "why")])
    assert not program.report({"a": _tried(100, 1)}, 1.0)
    assert "take it out of equivalents.py" in capsys.readouterr().out
    assert program.report({"b": _tried(100, 1)}, 1.0)  # a is not tried


def test_every_equivalent_has_a_reason() -> None:
    assert all(len(each.reason.split()) > 3 for each in EQUIVALENTS)
