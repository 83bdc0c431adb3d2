"""The words for what differs between two versions: every kind of change is in one list."""

from dataclasses import replace
from typing import Any

import pytest

from bq_harper_assets.cli.schema.version_text import LISTS as LISTED
from bq_harper_assets.cli.schema.version_text import change_lines, diff_lists, origin, recorded_json
from bq_harper_assets.ledger.records import SchemaVersion
from bq_harper_assets.schema.change import Change, ChangeKind
from bq_harper_assets.schema.changes import changes_between
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets_tests.cli.schema.test_group import LISTS, changed
from bq_harper_assets_tests.schema.samples import contract, schema
from bq_harper_assets_tests.stores.small_tables import utc


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


def version(**known: Any) -> SchemaVersion:
    usual = {"version": 3, "body": {}, "recorded_at": utc(2026, 1, 5, 12, 30, 15), "by": "ann"}
    return SchemaVersion(**{**usual, "cause": "applied", "changes": None, **known})


def test_an_origin_says_when_by_whom_and_why_as_far_as_that_is_known() -> None:
    assert origin(version()) == "2026-01-05 12:30:15 UTC by ann: applied"
    assert origin(version(by=None)) == "2026-01-05 12:30:15 UTC: applied"
    assert origin(version(cause=None)) == "2026-01-05 12:30:15 UTC by ann"
    assert origin(version(by="", cause="")) == "2026-01-05 12:30:15 UTC"


def test_programs_read_a_version_without_its_columns_or_that_there_is_none() -> None:
    assert recorded_json(version(source_fingerprint="f")) == {
        "version": 3,
        "recorded_at": "2026-01-05T12:30:15+00:00",
        "by": "ann",
        "cause": "applied",
        "source_fingerprint": "f",
    }
    assert set(recorded_json(None).values()) == {None}


def test_a_change_has_the_sign_of_its_list() -> None:
    def line(kind: ChangeKind) -> str:
        change = Change(kind=kind, column="c", before="INT64", after="STRING", action="so")
        [told] = change_lines([change])
        return told

    signs = {kind: line(kind)[:4] for kind in ChangeKind}
    assert {kind for kind, sign in signs.items() if sign == "  + "} == set(LISTED["addedColumns"])
    assert {kind for kind, sign in signs.items() if sign == "  - "} == set(LISTED["removedColumns"])
    assert set(signs.values()) == {"  + ", "  - ", "  ~ "}
