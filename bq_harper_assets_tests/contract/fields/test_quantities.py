"""Windows and starts that cannot be meant are told like any other value."""

from collections.abc import Callable

from bq_harper_assets_tests.contract.conftest import Disk


def test_a_start_in_the_future_is_told_by_its_name(one_table: Callable[[str], Disk]) -> None:
    (warning,) = one_table("sync: {startTimestamp: 2030-01-01}").load().warnings
    assert warning.message.startswith("sync.startTimestamp lies in the future")


def test_a_window_far_too_long_is_told_like_any_other(one_table: Callable[[str], Disk]) -> None:
    told = one_table("window: ${WINDOW}").refusal({"WINDOW": "9" * 5000})
    assert "tables[0].window = ${WINDOW} (table orders)\n    must be 5m, 15m" in told


def test_a_start_in_antiquity_is_told_as_a_date(one_table: Callable[[str], Disk]) -> None:
    told = one_table("sync: {startTimestamp: 0001-01-01}").refusal()
    assert "from 0001-01-01 to now" in told
