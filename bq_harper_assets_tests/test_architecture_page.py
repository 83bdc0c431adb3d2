"""What docs/architecture.md names is there: a map that is out of date leads people astray."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bq_harper_assets_tests.conftest import PROJECT_ROOT

PAGE = (PROJECT_ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE, TESTS = PROJECT_ROOT / "bq_harper_assets", PROJECT_ROOT / "bq_harper_assets_tests"
RULES = re.findall(r"^\| (\d+) \| .+ \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)


def found(path: str) -> Path | None:
    """A file of the package or of its tests, by its path there."""
    bare = path.removeprefix("bq_harper_assets_tests/")
    return next((root / bare for root in (PACKAGE, TESTS) if (root / bare).is_file()), None)


def named_functions() -> Iterator[tuple[str, str]]:
    """Each module of the rules' third column, with each name that follows it."""
    for _, kept_by, _ in RULES:
        for part in kept_by.split(";"):
            path, *names = re.findall(r"`([^`]+)`", part)
            yield from ((path, name) for name in names)


def test_all_seventeen_rules_are_listed() -> None:
    assert [int(number) for number, _, _ in RULES] == list(range(1, 18))


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`?([a-z_]+/[a-z_/]+\.py)`?", PAGE))))
def test_a_module_that_the_page_names_exists(path: str) -> None:
    assert found(path), f"docs/architecture.md names {path}, which does not exist"


@pytest.mark.parametrize(("path", "name"), list(named_functions()))
def test_what_keeps_a_rule_is_defined_where_the_page_says(path: str, name: str) -> None:
    module = found(path)
    assert module is not None
    assert re.search(rf"(def|class) {name}\b", module.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(test_[a-z_]+)`", PAGE))))
def test_a_test_that_the_page_names_exists(name: str) -> None:
    rules = (TESTS / "history" / "test_rules.py").read_text(encoding="utf-8")
    assert f"def {name}(" in rules
