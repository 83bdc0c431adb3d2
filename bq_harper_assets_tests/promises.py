"""docs/promises.md held to its word: all tests of a promise called kept pass, and one has run.

As a pytest plugin it notes which `@pytest.mark.promise("K5")` tests passed and which failed, and
judges when all have run, in whatever order and in however many processes they did.
As a program (`make promises`) it prints kept / all by group.
"""

import re
from collections import defaultdict
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "promises.md"
STATES = ("kept", "partly", "open")
# An attribute of a report; pytest-xdist brings it from a worker to the process that judges.
_PROMISES = "promises"
# Options that leave tests out. Without the plugin cacheprovider some of them are not there.
_NARROWING = ("keyword", "markexpr", "lf", "stepwise", "deselect", "ignore", "ignore_glob")
_GROUP = re.compile(r"^## (?P<letter>[A-Z])\. (?P<title>.+)$")
_ROW = re.compile(r"^\| (?P<id>[A-Z]\d+) \| (?P<promise>.+) \| (?P<state>[^|]+) \|$")


@dataclass(frozen=True)
class Promise:
    """One line of the page. A state may say what is missing: `partly: no sync yet`."""

    id: str
    promise: str
    state: str

    @property
    def word(self) -> str:
        """The state without its remark."""
        return self.state.split(":")[0].strip()


@dataclass
class Outcomes:
    """What this run showed, by promise."""

    named: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    passed: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    failed: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def note(self, report: pytest.TestReport) -> None:
        """A promise is shown by a test whose body ran to its end, and denied by one that failed."""
        for promise in getattr(report, _PROMISES, ()):
            self.named[promise].add(report.nodeid)
            if report.failed:  # in its fixtures too
                self.failed[promise].add(report.nodeid)
            elif report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
                self.passed[promise].add(report.nodeid)


OUTCOMES = pytest.StashKey[Outcomes]()


def read_promises(page: str) -> dict[str, list[Promise]]:
    """The promises by group heading, in the page's order."""
    groups: dict[str, list[Promise]] = {}
    group = ""
    for line in page.splitlines():
        if heading := _GROUP.match(line):
            group = f"{heading['letter']}. {heading['title']}"
            groups[group] = []
        elif row := _ROW.match(line):
            groups[group].append(Promise(row["id"], row["promise"], row["state"].strip()))
    return groups


def broken(promises: list[Promise], outcomes: Outcomes) -> Iterator[str]:
    """Each way in which the page and the tests disagree."""
    known = {promise.id for promise in promises}
    for promise in promises:
        shown_by = sorted(outcomes.passed[promise.id])
        if promise.word not in STATES:
            yield f"{promise.id} has the state {promise.state!r}; must begin with one of {STATES}"
        if promise.word in ("kept", "partly") and not shown_by:
            yield f"{promise.id} is called {promise.word}, and no passing test shows it"
        if promise.word == "kept" and (failed := sorted(outcomes.failed[promise.id])):
            yield f"{promise.id} is called kept, and {failed[0]} fails"
        if promise.word == "open" and shown_by:
            yield f"{promise.id} is called open, and {shown_by[0]} shows it"
    for unknown in sorted(set(outcomes.named) - known):
        test = min(outcomes.named[unknown])
        yield f"{test} names {unknown}, which docs/promises.md does not list"


def is_whole_suite(config: pytest.Config) -> bool:
    """Whether all tests were asked for; promises are judged only then."""
    narrowed = any(config.getoption(name, None) for name in _NARROWING)
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not narrowed


def pytest_configure(config: pytest.Config) -> None:
    """Start with nothing shown."""
    config.stash[OUTCOMES] = Outcomes()
    is_worker = hasattr(config, "workerinput")  # of pytest-xdist: it sees some of the tests only
    if is_whole_suite(config) and not is_worker:
        config.pluginmanager.register(Judge(config))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write the promises of a test into its report."""
    report = yield
    promises = [promise for mark in item.iter_markers("promise") for promise in mark.args]
    setattr(report, _PROMISES, promises)
    return report


class Judge:
    """Reads the reports of all tests, and fails a run of the whole suite that breaks the page."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._page = config.rootpath / "docs" / "promises.md"
        self._found: list[str] | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a result, of this process or of a worker."""
        self._config.stash[OUTCOMES].note(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Judge, unless the run was cut short."""
        cut = session.shouldstop or session.shouldfail or self._config.option.collectonly
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and not cut:
            groups = read_promises(self._page.read_text(encoding="utf-8")).values()
            promises = [promise for group in groups for promise in group]
            self._found = list(broken(promises, self._config.stash[OUTCOMES]))
            if self._found:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what the judgement is."""
        if self._found is None:
            return
        terminalreporter.section("promises")
        for each in self._found or ["the tests show what docs/promises.md says"]:
            terminalreporter.line(each)


def main() -> None:
    """Print the tally."""
    kept_in_all, all_in_all = 0, 0
    for group, promises in read_promises(PAGE.read_text(encoding="utf-8")).items():
        kept = sum(promise.word == "kept" for promise in promises)
        partly = sum(promise.word == "partly" for promise in promises)
        kept_in_all, all_in_all = kept_in_all + kept, all_in_all + len(promises)
        remark = f"  (and {partly} partly)" if partly else ""
        print(f"{kept:4} / {len(promises):<3} {group}{remark}")
    print(f"{kept_in_all:4} / {all_in_all:<3} in all")


if __name__ == "__main__":
    main()
