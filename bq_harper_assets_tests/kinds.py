"""Which part of the suite a test belongs to, found from what it uses, for `pytest -m`.

unit          needs no server
integration   runs on real servers
faults        breaks something under way: an answer, a connection, a process; one of the two above
live          runs on the user's own BigQuery and Harper, if TEST_LIVE_SERVICES is set
long          is long by nature, and left out unless asked for: `make test-long`, `pytest -m long`
"""

from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from bq_harper_assets_tests import fault_proxy
from bq_harper_assets_tests.stores.cutting_proxy import cutting_proxy

PARTS = ("unit", "integration", "live")
ROOT = Path(__file__).parent
_NEEDS = {"harper", "bigquery", "spark", "registry"}
_SERVERS = {"local_stack", "harper_server", "bigquery_server", "stack", "spark", "postgres_server"}
_FAULTS = fault_proxy.Fault.__args__
_BREAK = (*_FAULTS, cutting_proxy)
_KILLS = {"kill", "killpg", "SIGKILL"}


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test, and leave out the long ones unless they are asked for."""
    for item in items:
        item.add_marker(part_of(item))
        if is_about_faults(item):
            item.add_marker("faults")
        if is_long(item):
            item.add_marker("long")
    if not _asks_for_long_tests(config):
        left_out = [item for item in items if is_long(item)]
        items[:] = [item for item in items if not is_long(item)]
        config.hook.pytest_deselected(items=left_out)


def is_long(item: pytest.Item) -> bool:
    """Whether the test lies in the folder of those that `make test` leaves out."""
    return (ROOT / "long") in item.path.parents


def _asks_for_long_tests(config: pytest.Config) -> bool:
    named = (Path(argument.split("::")[0]).resolve() for argument in config.args)
    in_folder = any(path.is_relative_to(ROOT / "long") for path in named)
    return in_folder or "long" in config.option.markexpr.split()


def part_of(item: pytest.Item) -> str:
    """One of PARTS."""
    if (ROOT / "live") in item.path.parents:
        return "live"
    names = set(getattr(item, "fixturenames", ()))
    on_postgres = _params(item).get("backend") == "postgresql"
    marked = any(mark.name in _NEEDS for mark in item.iter_markers())
    return "integration" if marked or on_postgres or names & _SERVERS else "unit"


def is_about_faults(item: pytest.Item) -> bool:
    """Whether the test, its fixtures or the helpers they call break something under way."""
    if (ROOT / "history") in item.path.parents:
        return True  # crashes and late requests at random
    if any(isinstance(value, _FAULTS) for value in _params(item).values()):
        return True
    seen: set[FunctionType] = set()
    return any(_breaks(function, seen) for function in _functions(item))


def _params(item: pytest.Item) -> dict[str, Any]:
    return getattr(getattr(item, "callspec", None), "params", {})


def _functions(item: pytest.Item) -> Iterator[FunctionType]:
    yield from _plain(getattr(item, "function", None))
    known = item._fixtureinfo.name2fixturedefs if hasattr(item, "_fixtureinfo") else {}
    for definitions in known.values():
        yield from _plain(definitions[-1].func)


def _plain(function: Any) -> Iterator[FunctionType]:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    if isinstance(function, FunctionType):
        yield function


def _breaks(function: FunctionType, seen: set[FunctionType]) -> bool:
    if function in seen or not function.__module__.startswith("bq_harper_assets_tests"):
        return False
    seen.add(function)
    for name in _names(function.__code__):
        used = function.__globals__.get(name)
        if name in _KILLS or any(used is each for each in _BREAK):
            return True
        if any(_breaks(helper, seen) for helper in _plain(used)):
            return True
    return False


def _names(code: CodeType) -> Iterator[str]:
    """That it uses, also inside the functions that it defines."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
