"""docs/promises.md held to its word: a promise called kept must be shown by a test that passes.

As a pytest plugin it notes which `@pytest.mark.promise("K5")` tests passed and which failed;
test_promises.py judges, last of all.
As a program (`make promises`) it prints kept / all by group.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "promises.md"
STATES = ("kept", "partly", "open")
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
    is_whole_suite: bool = True


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


def pytest_configure(config: pytest.Config) -> None:
    """Start with nothing shown."""
    config.stash[OUTCOMES] = Outcomes()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Note who names what, and let the judge run last."""
    outcomes = config.stash[OUTCOMES]
    for item in items:
        for mark in item.iter_markers("promise"):
            for promise in mark.args:
                outcomes.named[promise].add(item.nodeid)
    # Without the plugin cacheprovider there is no option `lf`.
    narrowing = (config.getoption(name, None) for name in ("keyword", "markexpr", "lf"))
    outcomes.is_whole_suite = not (any(narrowing) or _is_narrowed(config))
    items.sort(key=lambda item: item.path.name == "test_promises.py")


def _is_narrowed(config: pytest.Config) -> bool:
    return config.args_source is not pytest.Config.ArgsSource.TESTPATHS


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """A promise is shown by a test whose body ran to its end, and denied by one that failed."""
    outcomes = item.config.stash[OUTCOMES]
    for mark in item.iter_markers("promise"):
        for promise in mark.args:
            if call.excinfo is not None:
                if not call.excinfo.errisinstance(pytest.skip.Exception):
                    outcomes.failed[promise].add(item.nodeid)  # its fixtures' failures too
            elif call.when == "call":
                outcomes.passed[promise].add(item.nodeid)


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
