"""A change that an earlier release recorded can be read."""

from dataclasses import replace

import pytest

from bq_harper_assets.schema.change import Change, ChangeKind
from bq_harper_assets_tests.schema.test_changes import TEXT
from bq_harper_assets_tests.schema.versions import story, told


@pytest.mark.promise("F1")
def test_what_an_earlier_release_told_is_read_without_what_nobody_acted_on() -> None:
    body = {"column": "", "before": "", "after": "", "action": "recorded", "severity": "info"}
    for kind in ("order", "description", "clustering"):
        assert Change.parse({"kind": kind, **body}) is None
    [kept] = told(story(()), story((), (TEXT,)))
    assert Change.parse(kept.body()) == kept


REMOVED = Change(
    kind=ChangeKind.REMOVED,
    column="speed",
    before="STRING",
    after="",
    action="left out from now on",
    severity="warn",
)


@pytest.mark.promise("F1")
def test_a_field_that_an_earlier_release_set_aside_is_told_as_synced_again() -> None:
    aside = replace(REMOVED, kind=ChangeKind.SET_ASIDE, column="address.place.zip")
    told = Change.parse(aside.body())
    assert told is not None
    assert told.action == (
        "a rollback by an earlier release stopped its sync; this release syncs it again with the"
        " rest of address"
    )
    assert replace(told, action=aside.action) == aside
    for whole in (replace(aside, column="address"), replace(REMOVED, column="address.zip")):
        assert Change.parse(whole.body()) == whole


def test_a_change_is_one_line_with_what_is_known_of_it() -> None:
    kind = ChangeKind.NOT_SELECTED
    assert str(REMOVED) == "speed removed (STRING): left out from now on"
    assert str(replace(REMOVED, kind=kind, after="INT64")) == (
        "speed not selected (STRING -> INT64): left out from now on"
    )
    of_table = replace(REMOVED, kind=ChangeKind.PRIMARY_KEY, column="", before="")
    assert str(of_table) == "primary key: left out from now on"
