"""What the tests of the stores share."""

import socket

import pytest

from bq_harper_assets_tests.sync.conftest import ledger, memory, spark, sync, tables

__all__ = ["ledger", "memory", "spark", "sync", "tables"]


@pytest.fixture
def nowhere() -> str:
    """An address on loopback at which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"
