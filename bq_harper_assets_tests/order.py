"""The order of the files, which depend on no order: those that need servers come first.

What needs no server is short, so that processes that share the suite end at about the same time.
pytest-xdist keeps to the order with `--no-loadscope-reorder`; without, it would begin with the
files that have the most tests, and end with those whose few tests take minutes.
"""

import pytest

from bq_harper_assets_tests.kinds import part_of


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files with a test that needs a server before all others."""
    with_servers = {item.path for item in items if part_of(item) != "unit"}
    items.sort(key=lambda item: item.path not in with_servers)
