"""Runs last: the whole suite's results against docs/promises.md."""

import pytest

from bq_harper_assets_tests.promises import OUTCOMES, PAGE, Outcomes, Promise, broken, read_promises


def test_every_promise_called_kept_is_shown_by_a_passing_test(
    request: pytest.FixtureRequest,
) -> None:
    outcomes = request.config.stash[OUTCOMES]
    if not outcomes.is_whole_suite:
        pytest.skip(
            "only a part of the tests was asked for; promises are judged on the whole suite"
        )
    promises = [
        p for group in read_promises(PAGE.read_text(encoding="utf-8")).values() for p in group
    ]
    assert promises
    assert list(broken(promises, outcomes)) == []


def test_no_promise_is_listed_twice() -> None:
    ids = [
        p.id for group in read_promises(PAGE.read_text(encoding="utf-8")).values() for p in group
    ]
    assert len(ids) == len(set(ids))


def test_a_kept_promise_without_a_passing_test_and_an_unknown_one_are_both_found() -> None:
    outcomes = Outcomes()
    outcomes.named["Z99"].add("test_x")
    outcomes.passed["A2"].add("test_y")
    promises = [
        Promise("A1", "", "kept"),
        Promise("A2", "", "open"),
        Promise("A3", "", "partly: no sync yet"),
        Promise("A4", "", "done"),
        Promise("A5", "", "open: needs a cloud"),
    ]
    assert list(broken(promises, outcomes)) == [
        "A1 is called kept, and no passing test shows it",
        "A2 is called open, and test_y shows it",
        "A3 is called partly, and no passing test shows it",
        "A4 has the state 'done'; must begin with one of ('kept', 'partly', 'open')",
        "test_x names Z99, which docs/promises.md does not list",
    ]
