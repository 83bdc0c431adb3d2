"""The random histories have power: with a rule of the protocol broken they fail, and soon."""

from pathlib import Path

import pytest

from bq_harper_assets_tests.history import test_rules
from bq_harper_assets_tests.history.mutants import MUTANTS
from bq_harper_assets_tests.history.mutations import histories_until_noticed
from bq_harper_assets_tests.history.world import Servers

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]
TESTS = Path(__file__).parents[1]
LONGEST_S = 120


@pytest.mark.parametrize(
    "name",
    [
        *("copy always", "no lookup before delete", "commit before data"),
        "takeover without waiting",
    ],
)
def test_a_broken_rule_is_noticed_by_random_histories(
    servers: Servers, quiet: None, name: str
) -> None:
    mutant = next(each for each in MUTANTS if each.name == name)
    _, seen = histories_until_noticed(servers, mutant, LONGEST_S)
    assert seen


def test_every_broken_rule_names_a_test_that_is_there() -> None:
    for mutant in MUTANTS:
        if mutant.scene:
            assert hasattr(test_rules, f"test_{mutant.scene}")
        else:
            path, _, name = mutant.elsewhere.partition("::")
            assert f"def {name}(" in (TESTS / path).read_text(encoding="utf-8")
