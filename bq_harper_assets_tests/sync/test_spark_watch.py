"""A Spark job of which no task ends is told, with how many are done and since when."""

from bq_harper_assets.sync.spark_watch import Counts, QuietJobs


class Jobs:
    """What Spark says is under way."""

    def __init__(self) -> None:
        self.active: Counts = ()

    def __call__(self) -> Counts:
        return self.active


def test_it_speaks_when_no_task_has_ended_for_30_s() -> None:
    jobs = Jobs()
    quiet = QuietJobs("moving 20 cells of orders", jobs)
    told = []
    for now, active in (
        (0.0, ()),
        (1.0, ((7, 8, 2),)),
        (30.9, ((7, 8, 2),)),
        (31.0, ((7, 8, 2),)),
        (32.0, ((7, 8, 3),)),
        (61.0, ((7, 8, 3),)),
        (62.0, ((7, 8, 3),)),
        (63.0, ()),
        (99.0, ()),
    ):
        jobs.active = active
        told.append(quiet.tell(now))
    assert [bool(text) for text in told] == [False] * 3 + [True, False, False, True, False, False]
    assert told[3] is not None
    assert told[3].startswith(
        "waits for Spark, moving 20 cells of orders: 2 of 8 tasks are done and none has ended since"
    )
    assert "BigQuery or Harper answers slowly or not" in told[3]


def test_a_spark_that_cannot_be_asked_is_told_by_nobody() -> None:
    def dead() -> Counts:
        raise ConnectionRefusedError

    quiet = QuietJobs("moving", dead)
    assert [quiet.tell(now) for now in (0.0, 60.0)] == [None, None]
