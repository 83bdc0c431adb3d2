"""What is said while check results are written."""

from bq_harper_assets.defs.checks.evaluations import SAY_EVERY_S, Telling


def test_a_long_filing_is_told_every_few_seconds_and_a_short_one_not_at_all() -> None:
    at = 0.0
    said: list[str] = []
    telling = Telling(said.append, lambda: at)
    for number in range(1, 31):
        telling.tell(f"writing check results, {number} of 30")
        at += SAY_EVERY_S / 10
    assert said == ["writing check results, 11 of 30", "writing check results, 21 of 30"]
