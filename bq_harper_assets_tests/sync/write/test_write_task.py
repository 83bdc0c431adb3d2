"""What a task keeps of a row that it could not write."""

from bq_harper_assets.sync.spark.receipts import Receipt, RejectedRow
from bq_harper_assets.sync.write.write_task import within_limit


def test_the_limit_counts_the_rows_of_all_tasks_together() -> None:
    two = tuple(RejectedRow(0, str(n), "not a number", "{}") for n in range(2))
    clean = Receipt(tallies={}, refusals=(), requests=1, retries=0, unanswered_at=None)
    receipts = [
        Receipt(tallies={}, refusals=two, requests=1, retries=0, unanswered_at=None),
        clean,
        Receipt(tallies={}, refusals=two, requests=1, retries=0, unanswered_at=None),
    ]
    assert within_limit(receipts[:2], "Ships", 3) == tuple(receipts[:2])
    first, second, third = within_limit(receipts, "Ships", 3)
    assert second == clean
    for receipt in (first, third):
        assert receipt.failure is not None
        assert "more than 3 rows of Ships cannot be stored" in receipt.failure.error
        assert not receipt.failure.is_transient
