"""Tests that are long by nature, for `make test-long`; in short they are part of `.ci/run`."""

import os
from dataclasses import dataclass
from typing import TypeVar

import pytest

from bq_harper_assets_tests.history.conftest import quiet, servers
from bq_harper_assets_tests.sync.conftest import ledger, spark, sync, tables

__all__ = ["ledger", "quiet", "servers", "spark", "sync", "tables"]
SWITCH = "TEST_LONG"
T = TypeVar("T")


@dataclass(frozen=True)
class HowLong:
    """Whether all long tests together may take 3 hours, or 10 minutes."""

    is_short: bool

    def choose(self, *, short: T, full: T) -> T:
        """How many rounds, seeds or rows a test takes."""
        return short if self.is_short else full


@pytest.fixture(scope="session")
def how_long() -> HowLong:
    """In full, unless `make test-long LONG=short` has asked for less."""
    asked = os.environ.get(SWITCH, "full")
    assert asked in ("short", "full"), f"{SWITCH} is short or full, not {asked!r}"
    return HowLong(is_short=asked == "short")
