"""A change that an earlier release recorded can be read."""

import pytest

from bq_harper_assets.schema.change import Change
from bq_harper_assets_tests.schema.test_changes import TEXT
from bq_harper_assets_tests.schema.versions import story, told


@pytest.mark.promise("F1")
def test_what_an_earlier_release_told_is_read_without_what_nobody_acted_on() -> None:
    body = {"column": "", "before": "", "after": "", "action": "recorded", "severity": "info"}
    for kind in ("order", "description", "clustering"):
        assert Change.parse({"kind": kind, **body}) is None
    [kept] = told(story(()), story((), (TEXT,)))
    assert Change.parse(kept.body()) == kept
