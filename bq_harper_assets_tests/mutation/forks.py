"""Tries changes of a module: a fork makes one in memory and runs tests until the first fails.

The tests are collected once per module. A fork of the process that has collected them replaces the
code of the changed function, so that a try costs little more than the tests that reach the
function. What is run at import is tried the slow way: a fork that has imported nothing of ours yet
imports the changed module, and collects the tests anew.
"""

import gc
import os
import pickle
import resource
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar

import pytest
from _pytest.tmpdir import tmppath_result_key
from _pytest.warnings import catch_warnings_for_item

from bq_harper_assets_tests.mutation.changes import Change, Mutable, functions_in

ROOT = Path(__file__).resolve().parents[2]
Result = TypeVar("Result")
# A change may make a loop endless, or a wait, or fill the memory. The processor's time is limited
# closely, and the clock's, which depends on what else the machine does, generously.
LEAST_CPU_SECONDS = 5
LEAST_SECONDS = 60
MOST_BYTES = 4 << 30


class TestsDoNotPass(Exception):
    """The tests of a module fail, or are missing, although nothing is changed."""


@dataclass(frozen=True)
class Survivor:
    """A survivor is a change that no test noticed."""

    line: int
    text: str  # of the line
    before: str
    after: str
    is_reached: bool


@dataclass(frozen=True)
class Tried:
    """What became of all changes of one module."""

    changes: int
    survivors: tuple[Survivor, ...]
    seconds: float


def in_fork(work: Callable[[], Result], seconds: float) -> Result | None:
    """Returns what the work returns in a fork; None if that dies or takes far too long.

    `seconds` is what it should take of the processor's time.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, max(LEAST_CPU_SECONDS, 3 * seconds))
            signal.alarm(int(max(LEAST_SECONDS, 60 * seconds)))
            resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
            with os.fdopen(writing, "wb") as answer:
                pickle.dump(work(), answer)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        told = answer.read()
    os.waitpid(child, 0)
    return pickle.loads(told) if told else None


def try_changes(
    module: str,
    tests: tuple[str, ...],
    root: Path,
    scratch: Path,
    left_out: frozenset[str] = frozenset(),
) -> Tried:
    """Makes every change of the module, one after the other, and returns those not noticed.

    The functions that are `left_out` are not changed.
    """
    start = time.monotonic()
    file = root / Path(*module.split(".")).with_suffix(".py")
    source = file.read_text(encoding="utf-8")
    mutable = Mutable(source, str(file), left_out)
    log = scratch / f"{module}.log"
    # Hypothesis is imported already, so pytest cannot rewrite its assertions, which does no harm.
    quiet = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    options = [*tests, "-x", "-q", "-p", "no:cacheprovider", f"--rootdir={root}", *quiet]

    def by_function() -> _Found:
        _write_to(log)
        with calls_noted(mutable.file) as at_import:
            runner = _Runner(mutable, _Found(at_import))
            pytest.main([*options, f"--basetemp={scratch / module}"], [runner])
        return runner.found

    found = in_fork(by_function, 600)
    if found is None or not found.noticed:
        raise TestsDoNotPass(f"{module}: {log.read_text(encoding='utf-8')[-2_000:]}")

    def by_import(change: Change) -> bool:
        _write_to(Path(os.devnull))
        sys.meta_path.insert(0, _ChangedModule(module, mutable.compiled(change)))
        return pytest.main([*options, f"--basetemp={scratch / (module + '-slow')}"]) != 0

    survivors = []
    for change, noticed, is_reached in zip(
        mutable.changes, found.noticed, found.reached, strict=True
    ):
        # A value that is computed at import with the function would still be the old one.
        is_stale = change.function is None or not found.at_import.isdisjoint(change.function.lines)
        if noticed:
            continue
        if is_stale and in_fork(partial(by_import, change), found.seconds + 5) is not False:
            continue
        text = source.splitlines()[change.line - 1].strip()
        survivors.append(
            Survivor(change.line, text, change.before, change.after, is_reached or is_stale)
        )
    return Tried(len(mutable.changes), tuple(survivors), time.monotonic() - start)


def _write_to(file: Path) -> None:
    sys.stdout.flush()
    with file.open("wb") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)


class _ChangedModule(MetaPathFinder):
    """Finds one module, with changed code."""

    def __init__(self, module: str, code: CodeType) -> None:
        self._module, self._code = module, code

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != self._module:
            return None
        spec = PathFinder.find_spec(name, path)
        assert spec is not None
        assert isinstance(spec.loader, SourceFileLoader)
        spec.loader.get_code = lambda name: self._code  # type: ignore[method-assign]
        return spec


@dataclass
class _Found:
    """What was found out by replacing functions, each list by change."""

    at_import: set[int]  # first lines of the functions that were called before any test
    noticed: list[bool | None] = field(default_factory=list)  # None: not known yet
    reached: list[bool] = field(default_factory=list)  # whether a test calls the function
    seconds: float = 0.0  # of the processor, that all tests take


@dataclass
class _Runner:
    """Is a pytest plugin that runs the collected tests once per change, each time in a fork."""

    mutable: Mutable
    found: _Found
    _living: dict[tuple[str, int], list[FunctionType]] = field(default_factory=dict)
    _noticed_by: Counter[int] = field(default_factory=Counter)  # number of a test

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Takes the place of pytest's own loop."""
        _note_calls(None)
        if session.testsfailed or not session.items:
            return True
        told = in_fork(lambda: self._reaching(session), 60)
        if told is None:
            return True
        reaching, self.found.seconds = told
        gc.collect()
        self._living = _living(self.mutable.file)
        gc.freeze()  # the forks share it then
        for change in self.mutable.changes:
            lines = change.function.lines if change.function else ()
            tests = [at for at, called in reaching if not called.isdisjoint(lines)]
            self.found.reached.append(bool(tests))
            self.found.noticed.append(self._notices(session, change, tests))
        return True

    def _reaching(self, session: pytest.Session) -> tuple[list[tuple[int, set[int]]], float] | None:
        """Returns the lines of the functions that each test calls, the fastest test first.

        The other number is the processor's time, in seconds, that all of them take.
        """
        found = []
        for at in range(len(session.items)):
            start = time.process_time()
            with calls_noted(self.mutable.file) as lines:
                if _first_failing(session, [at]) == at:
                    session.config.get_terminal_writer().line(f"{session.items[at].nodeid} fails")
                    return None
            found.append((time.process_time() - start, at, lines))
        in_order = [(at, lines) for _, at, lines in sorted(found, key=lambda each: each[0])]
        return in_order, sum(seconds for seconds, *_ in found)

    def _notices(self, session: pytest.Session, change: Change, tests: list[int]) -> bool | None:
        if change.function is None:
            return None
        key = (change.function.name, change.function.first_line)
        if not tests or key not in self._living:
            return False
        codes = functions_in(self.mutable.compiled(change))
        (new,) = (each for each in codes if (each.co_name, each.co_firstlineno) == key)
        # What noticed the change before this one often notices this one too.
        tests = sorted(tests, key=lambda at: -self._noticed_by[at])

        def work() -> int:
            for function in self._living[key]:
                function.__code__ = new
            return _first_failing(session, tests)

        failing = in_fork(work, self.found.seconds)
        if failing is not None and failing >= 0:
            self._noticed_by[failing] += 1
        return failing != -1


def _first_failing(session: pytest.Session, tests: list[int]) -> int:
    """Runs tests until one fails, and returns its number; -1 if none does."""
    for at, following in zip(tests, [*tests[1:], None], strict=True):
        test, after = session.items[at], None if following is None else session.items[following]
        with catch_warnings_for_item(session.config, test.ihook, "runtest", test):
            if _fails(test, after):
                return at
    return -1


def _fails(test: pytest.Item, following: pytest.Item | None) -> bool:
    """Runs one test, without the report of a failure, which takes longer than most tests."""
    hooks = test.ihook
    test.stash[tmppath_result_key] = {}  # a report would set it, and the fixture tmp_path reads it
    done = pytest.CallInfo.from_call(lambda: hooks.pytest_runtest_setup(item=test), "setup")
    if done.excinfo is None:
        done = pytest.CallInfo.from_call(lambda: hooks.pytest_runtest_call(item=test), "call")
    end = pytest.CallInfo.from_call(
        lambda: hooks.pytest_runtest_teardown(item=test, nextitem=following), "teardown"
    )
    errors = [call.excinfo for call in (done, end) if call.excinfo is not None]
    return any(not error.errisinstance(pytest.skip.Exception) for error in errors)


@contextmanager
def calls_noted(file: str) -> Iterator[set[int]]:
    """Notes the first lines of the functions of this file that are called meanwhile."""
    lines: set[int] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename == file:
            lines.add(frame.f_code.co_firstlineno)

    _note_calls(note)
    try:
        yield lines
    finally:
        _note_calls(None)


def _note_calls(note: Any) -> None:
    threading.setprofile(note)
    sys.setprofile(note)


def _living(file: str) -> dict[tuple[str, int], list[FunctionType]]:
    """Returns the functions of a module, by name and line, however they are wrapped."""
    found: dict[tuple[str, int], list[FunctionType]] = {}
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename == file:
            code = each.__code__
            found.setdefault((code.co_name, code.co_firstlineno), []).append(each)
    return found
