"""A receipt speaks for the try that wrote it."""

from bq_harper_assets.sync.spark.receipts import Receipt


def test_a_receipt_of_a_second_try_does_not_vouch_for_the_first() -> None:
    assert Receipt(tallies={}, refusals=(), requests=1, retries=0, unanswered_at=None).all_answered
    assert not Receipt(
        tallies={}, refusals=(), requests=1, retries=0, unanswered_at=12.5
    ).all_answered
    assert not Receipt(
        tallies={},
        refusals=(),
        requests=1,
        retries=0,
        unanswered_at=None,
        failure=None,
        earlier_tries=1,
    ).all_answered
