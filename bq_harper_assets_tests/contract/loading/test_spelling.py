"""Keys as users spell them, rightly or wrongly."""

import pytest

from bq_harper_assets.contract.loading.spelling import nearest, unknown_key
from bq_harper_assets_tests.contract.conftest import Disk
from bq_harper_assets_tests.contract.test_table import OneTable


def test_what_a_misspelled_key_would_have_said_is_not_called_missing(one_table: OneTable) -> None:
    assert one_table("latest: true\nkeey: a").refusal().startswith("1 problem ")
    assert one_table("latest: true\nkey: ${NOPE}").refusal().startswith("1 problem ")


def test_problems_name_keys_as_the_user_spells_them(disk: Disk) -> None:
    told = disk.tables(
        "tables:\n"
        "- {id: a, dataset: b, table: c, timestamp_column: d, target_table: E}\n"
        "- id: f\n  dataset: b\n  table: g\n  spot_check_size: 0\n  target_table: e\n"
    ).refusal()
    assert told.startswith("3 problems ")
    assert "config/tables.yaml:3: tables[1].timestamp_column (table f)\n    is missing" in told
    assert "config/tables.yaml:6: tables[1].spot_check_size = 0 (table f)" in told
    assert "config/tables.yaml:7: tables[1].target_table = e (table f)" in told
    assert "the target of table a (config/tables.yaml:2)" in told


KNOWN, ELSEWHERE = ("slices", "safetyLag"), {"pollInterval": "write it under sync:"}


@pytest.mark.parametrize(
    ("written", "neighbours", "told"),
    [
        ("slice", ["id"], "is not a key; did you mean slices?"),
        ("safety-lag", ["id"], "is not a key; did you mean safetyLag?"),
        ("SAFETYLAG", ["id"], "is not a key; did you mean safetyLag?"),
        ("safetylag", ["target_table"], "is not a key; did you mean safety_lag?"),
        ("saftyLag", ["target_table"], "is not a key; did you mean safetyLag?"),
        ("poll_interval", ["id"], "does not belong here: write it under sync:"),
        ("pollIntervall", ["id"], "is not a key; did you mean pollInterval? write it under sync:"),
        ("colour", ["id"], "is not a key; valid here: slices, safetyLag"),
        ("colour", ["target_table"], "is not a key; valid here: slices, safety_lag"),
    ],
)
def test_an_unknown_key_is_told_with_what_was_probably_meant(
    written: str, neighbours: list[str], told: str
) -> None:
    assert unknown_key(written, neighbours, KNOWN, ELSEWHERE) == told


def test_a_word_is_near_to_at_most_one_other() -> None:
    assert nearest("orders", ["order", "border"]) == "order"
    assert nearest("x", ["order"]) is None
    assert nearest("time_stamp-Column", ["timestampColumn"]) == "timestampColumn"
