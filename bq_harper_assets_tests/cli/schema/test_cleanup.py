"""Attributes that no sync writes any more, and what would drop them by hand."""

import pytest

from bq_harper_assets.schema.logical import Kind
from bq_harper_assets_tests.cli.conftest import ByHand
from bq_harper_assets_tests.cli.schema.test_decisions_answered_by_hand import NAME, SPEED, record
from bq_harper_assets_tests.cli.typed import told, typed_well
from bq_harper_assets_tests.schema.versions import of


@pytest.mark.parametrize("output", ["text", "json"])
def test_columns_that_are_no_longer_synced_are_listed_with_what_would_drop_them(
    by_hand: ByHand, output: str
) -> None:
    record(by_hand, [SPEED, NAME], [of("speed", Kind.INT64), NAME], [of("speed", Kind.INT64)])
    if output == "json":
        retired = told("schema", "cleanup", "orders")["retired"]
        assert [
            (each["attribute"], each["column"], each["since_version"], each["now_in"])
            for each in retired
        ] == [("speed", "speed", 2, "speed_v2"), ("name", "name", 3, None)]
        assert retired[0]["type"] == "STRING"
        assert retired[0]["operation"] == {
            "operation": "drop_attribute",
            "database": "data",
            "table": "Orders",
            "attribute": "speed",
        }
        return
    shown = typed_well("schema", "cleanup", "orders")
    assert "\nspeed      speed STRING" in shown
    assert "  speed_v2\n" in shown
    assert "bqh read orders --schema-version 1 shows rows with it" in shown
    assert shown.splitlines()[-1].startswith('  {"operation": "drop_attribute"')


def test_an_attribute_is_retired_since_it_went_the_last_time(by_hand: ByHand) -> None:
    record(by_hand, [SPEED, NAME], [SPEED], [SPEED, NAME], [SPEED], [of("crew", Kind.INT64)])
    retired = told("schema", "cleanup", "orders")["retired"]
    assert [(each["attribute"], each["since_version"]) for each in retired] == [
        ("name", 4),
        ("speed", 5),
    ]


def test_nothing_is_advised_where_every_attribute_is_synced(by_hand: ByHand) -> None:
    for looks in ([], [[SPEED]]):
        record(by_hand, *looks)
        assert typed_well("schema", "cleanup", "orders") == (
            "orders: every attribute that was written is still synced\n"
        )
        assert told("schema", "cleanup", "orders") == {"table": "orders", "retired": []}
