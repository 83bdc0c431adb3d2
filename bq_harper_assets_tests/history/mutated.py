"""A pytest plugin that breaks a rule of the protocol before any test runs.

The environment variable MUTANT names the rule, as `make mutations` prints it.
"""

import os

import pytest

from bq_harper_assets_tests.history.mutants import MUTANTS


def pytest_configure(config: pytest.Config) -> None:
    """For as long as the process lives."""
    mutant = next(each for each in MUTANTS if each.name == os.environ["MUTANT"])
    mutant.apply(pytest.MonkeyPatch())
