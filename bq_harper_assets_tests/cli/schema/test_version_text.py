"""The words for what differs between two versions: every kind of change is in one list."""

from dataclasses import replace

import pytest

from bq_harper_assets.cli.schema.version_text import LISTS as LISTED
from bq_harper_assets.cli.schema.version_text import diff_lists
from bq_harper_assets.schema.change import ChangeKind
from bq_harper_assets.schema.changes import changes_between
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets_tests.cli.schema.test_group import LISTS, changed
from bq_harper_assets_tests.schema.samples import contract, schema


def test_every_kind_of_change_is_in_one_list_of_the_diff() -> None:
    kinds = [kind for listed in LISTED.values() for kind in listed]
    assert sorted(kinds) == sorted(ChangeKind)
    assert tuple(LISTED) == LISTS


@pytest.mark.promise("F5")
def test_an_added_a_retyped_and_a_newly_indexed_column_are_told_in_their_own_lists() -> None:
    speed, port = Column(name="speed", kind=Kind.STRING), Column(name="port", kind=Kind.STRING)
    before = harper_plan(contract(key=["port"]), schema(speed, port)).version
    speed = replace(speed, kind=Kind.INT64)
    found = schema(speed, port, Column(name="crew", kind=Kind.INT64), partition_field="port")
    after = harper_plan(contract(key=["port"]), found, before).version
    lists = diff_lists(changes_between(before, after, contract()))
    assert changed(lists) == {
        "addedColumns": ["crew"],
        "typeChanges": ["speed"],
        "indexChanges": ["port"],
        "other": [""],
    }
    assert lists["other"][0]["kind"] == "partitioning"
