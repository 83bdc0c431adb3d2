"""What tasks did is added up by cell, and what became of them is told to the driver."""

from dataclasses import replace

import pytest

from bq_harper_assets.errors import BqhError, TransientError
from bq_harper_assets.sync.errors import NotCompared, NotComparedYet, SplitsLost
from bq_harper_assets.sync.identity.digest import Digest
from bq_harper_assets.sync.spark.receipts import (
    Failure,
    Receipt,
    Tally,
    error_of,
    failure_of,
    is_nameless,
    merged,
    nameless_id,
)

CLEAN = Receipt(tallies={}, refusals=(), requests=1, retries=0, unanswered_at=None)


def test_the_tallies_of_a_cell_are_added_up_over_all_tasks() -> None:
    first = replace(CLEAN, tallies={0: Tally(1, 2, 3, Digest(1, 2, 3)), 2: Tally(9, 8, 7)})
    second = replace(CLEAN, tallies={0: Tally(10, 20, 30, Digest(1, 5, 6))})
    found = merged([first, second])
    assert found == {0: Tally(11, 22, 33, Digest(1, 2, 3) + Digest(1, 5, 6)), 2: Tally(9, 8, 7)}
    assert first.tallies[0] == Tally(1, 2, 3, Digest(1, 2, 3))
    assert merged([]) == {}
    sum_ = Tally(1)
    sum_ += Tally(2, 3)
    assert sum_ == Tally(3, 3)


def test_a_receipt_is_read_back_as_it_was() -> None:
    receipt = replace(CLEAN, retries=3, extras=frozenset({"more"}), failure=Failure("x", True))
    assert Receipt.loads(receipt.dumps()) == receipt


def test_a_task_was_answered_if_it_and_all_its_tries_were() -> None:
    assert CLEAN.all_answered
    assert not replace(CLEAN, unanswered_at=0.0).all_answered
    assert not replace(CLEAN, earlier_tries=1).all_answered


class Late(TransientError):
    is_out_of_time = True


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (BqhError("wrong"), Failure("wrong", False)),
        (TransientError("busy"), Failure("busy", True)),
        (Late("too late"), Failure("too late", False)),
    ],
)
def test_only_an_error_that_has_time_left_may_pass(error: BqhError, failure: Failure) -> None:
    assert failure_of(error) == failure


def test_lost_splits_are_told_as_such() -> None:
    assert failure_of(SplitsLost("gone")).lost_splits
    assert not failure_of(BqhError("wrong")).lost_splits


def test_the_driver_raises_what_the_task_told() -> None:
    passing, final = error_of(Failure("busy", True)), error_of(Failure("wrong", False))
    assert isinstance(passing, NotComparedYet)
    assert not isinstance(final, NotComparedYet)
    assert isinstance(final, NotCompared)
    assert (str(passing), str(final)) == ("busy", "wrong")


def test_a_row_without_an_id_is_told_from_one_whose_id_looks_like_it() -> None:
    assert is_nameless(nameless_id("0123456789ABC"))
    assert nameless_id("0123456789ABC") == "no-id:0123456789ABC"
    assert is_nameless(None)
    assert not is_nameless("no-id:0123456789ABCD")
    assert not is_nameless("x no-id:0123456789ABC")
    assert not is_nameless("7")
