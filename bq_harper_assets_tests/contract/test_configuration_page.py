"""docs/configuration.md is held to the code: keys, variables, and a message as it looks."""

import re
from pathlib import Path

import pytest

from bq_harper_assets.contract.loading.shapes import CONNECTION_KEYS
from bq_harper_assets.contract.loading.spelling import keys_of
from bq_harper_assets.contract.settings.origins import SETTING_NAMES, SETTING_VARIABLES
from bq_harper_assets.contract.table import Sync, TableContract, ValuePolicies
from bq_harper_assets_tests.contract.conftest import Disk

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(?:yaml)?\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
TABLE_KEYS = [
    *(key for key in keys_of(TableContract) if key not in ("sync", "values")),
    *(f"sync.{key}" for key in keys_of(Sync)),
    *(f"values.{key}" for key in keys_of(ValuePolicies)),
]


@pytest.mark.parametrize("key", [*TABLE_KEYS, *CONNECTION_KEYS, *SETTING_VARIABLES.values()])
def test_every_key_and_variable_has_its_line(key: str) -> None:
    assert re.search(rf"^\|[^|]*`{re.escape(key)}`", PAGE, re.MULTILINE)


@pytest.mark.parametrize("name", SETTING_NAMES)
def test_every_setting_of_a_profile_has_its_line(name: str) -> None:
    section, _, key = name.partition(".")
    profiles = PAGE.partition("## Profiles")[2].partition("## Variables")[0]
    assert re.search(rf"^\| `{section}\.[^|]*{key}`", profiles, re.MULTILINE)


def test_the_first_example_loads(disk: Disk) -> None:
    (table,) = disk.tables(BLOCKS[0]).load().tables
    assert (table.id, table.key) == ("orders", ("order_id",))


def test_the_message_shown_is_the_one_that_is_told(disk: Disk) -> None:
    disk.tables(
        "tables:\n  - id: orders\n    dataset: shop\n    table: orders\n"
        "    timestampColumn: created_at\n    targetTable: Orders\n    columns: [order_id, total]\n"
        "    pollIntervall: 30000\n"
    )
    assert disk.refusal() == BLOCKS[1].rstrip("\n")
