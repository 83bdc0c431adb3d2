"""What a process says it is at: the newest step that is still open."""

import time
from contextlib import ExitStack

import pytest

from bq_harper_assets.activity import doing, note_committed, now_doing, tallying


def test_the_newest_open_step_is_what_is_done_now_and_the_outer_one_comes_back() -> None:
    assert now_doing() is None
    with doing("moving 4 cells"):
        assert str(now_doing()) == "moving 4 cells"
        with doing("writing check results", total=4112) as step:
            step.advance(2310)
            assert str(now_doing()) == "writing check results, 2,310 of 4,112"
        assert str(now_doing()) == "moving 4 cells"
    assert now_doing() is None


def test_the_time_of_an_outer_step_does_not_count_what_an_inner_one_took() -> None:
    with doing("moving 4 cells") as outer:
        outer.since -= 3600
        with doing("waiting for the lease"):
            assert time.monotonic() - outer.since >= 3600
        assert time.monotonic() - outer.since < 60


def test_a_step_that_goes_on_keeps_its_time_when_an_older_one_ends() -> None:
    with ExitStack() as older:
        older.enter_context(doing("proving 4 cells"))
        with doing("stopping") as shown:
            shown.since -= 3600
            older.close()
            assert now_doing() is shown
            assert time.monotonic() - shown.since >= 3600


def test_a_step_that_fails_is_no_longer_open() -> None:
    with pytest.raises(RuntimeError), doing("moving"):
        raise RuntimeError
    assert now_doing() is None


def test_every_open_tally_hears_of_a_commit_and_none_that_is_closed() -> None:
    with tallying() as outer:
        with tallying() as inner:
            note_committed({"a": 1})
        note_committed({"a": 2, "b": 3})
    note_committed({"c": 4})
    assert (dict(outer.rows_read), dict(inner.rows_read)) == ({"a": 2, "b": 3}, {"a": 1})
