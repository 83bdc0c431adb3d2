"""Under the lease and at one T it is decided which part of each cell is moved, and how."""

from datetime import timedelta

import pytest

from bq_harper_assets.instants import micros_at
from bq_harper_assets.ledger.records import Mode
from bq_harper_assets.sync.errors import TurnFailed, WindowStillOpen
from bq_harper_assets_tests.sync.memory_source import DAY, Small, ship

MINUTE = timedelta(minutes=1)


def live(small: Small, minutes: float, lag: str = "0s") -> None:
    """The window of hour 0 is open, so many minutes after its begin."""
    small.declare(slices=1, live=True, safety_lag=lag)
    small.source.now = DAY + minutes * MINUTE


def test_an_open_window_is_read_up_to_the_lag_and_topped_up_from_there(small: Small) -> None:
    live(small, 20, "300s")
    small.source.put(ship(1, 5), ship(2, 16), ship(3, 19))
    [first] = small.run(0).cells
    assert (first.mode, first.result.written, first.is_open) == (Mode.COPY, 1, True)
    small.source.now = DAY + 30 * MINUTE
    [second] = small.run(0).cells
    assert (second.mode, second.result.written) == (Mode.TOPUP, 2)
    assert small.held == small.wanted
    assert second.upto == micros_at(small.source.now - 5 * MINUTE)
    reads = [asked[1] for asked in small.source.asked if asked[0] == "splits"]
    second_3 = DAY + timedelta(seconds=3)
    assert reads[-1][:2] == (second_3 + 15 * MINUTE, small.source.now - 5 * MINUTE)


def test_an_open_window_whose_committed_part_changed_is_compared(small: Small) -> None:
    live(small, 20)
    small.source.put(ship(1, 5), ship(2, 15))
    small.run(0)
    small.source.put(ship(1, 5, "y"), ship(2, 15), ship(3, 20))
    [cell] = small.run(0).cells
    assert (cell.mode, cell.result.written) == (Mode.RECONCILE, 2)
    assert small.held == small.wanted


def test_a_window_that_closed_since_is_compared_whole(small: Small) -> None:
    live(small, 20)
    small.source.put(ship(1, 5), ship(2, 55))
    small.run(0)
    small.source.now = DAY + 61 * MINUTE
    [cell] = small.run(0).cells
    assert (cell.mode, cell.is_open) == (Mode.RECONCILE, False)
    assert small.held == small.wanted


def test_a_deep_turn_compares_an_open_window_too(small: Small) -> None:
    live(small, 20)
    small.source.put(ship(1, 5))
    small.run(0)
    small.harper.tables["Ships"].rows[1]["name"] = "bent"
    [cell] = small.run(0, deep=True).cells
    assert (cell.mode, cell.result.written) == (Mode.RECONCILE, 1)


def test_a_top_up_adds_to_the_digest_of_what_was_there(small: Small) -> None:
    live(small, 20)
    small.source.put(ship(1, 5), ship(2, 25))
    small.run(0)
    small.source.now = DAY + 30 * MINUTE
    [topped] = small.run(0).cells
    assert topped.mode is Mode.TOPUP
    small.source.now = DAY + 61 * MINUTE
    [whole] = small.run(0).cells
    assert whole.result.digest == topped.result.digest
    assert whole.result.read == 2


@pytest.mark.parametrize(
    ("minutes", "settings", "told"),
    [
        (59, {"live": False}, "is open until 2026-01-05 01:02:00 UTC"),
        (61, {"live": False}, "is open until 2026-01-05 01:02:00 UTC"),
        (-1, {"live": False}, "is open until"),
        (1, {}, "begins at 2026-01-05 00:02:00 UTC"),
        (2 - 1 / 60, {}, "begins at"),  # a turn comes a second later
    ],
)
def test_a_window_that_cannot_be_read_yet_says_when(
    small: Small, minutes: float, settings: dict[str, bool], told: str
) -> None:
    small.declare(safety_lag="120s", **settings)
    small.source.now = DAY + minutes * MINUTE
    with pytest.raises(WindowStillOpen, match=told) as failed:
        small.run(0)
    assert "the window 2026-01-05T00:00 of ships" in str(failed.value)
    assert "Ships" not in small.harper.tables or small.harper.rows("Ships") == []


@pytest.mark.parametrize("live", [True, False])
def test_a_window_can_be_read_as_soon_as_the_lag_after_its_end(small: Small, live: bool) -> None:
    small.declare(safety_lag="120s", live=live)
    small.source.put(ship(1, 59.9))
    small.source.history[0] = (DAY, small.source.history[0][1])
    small.source.now = DAY + 62 * MINUTE - timedelta(seconds=1)  # a turn comes a second later
    assert {cell.is_open for cell in small.run(0).cells} == {False}
    assert small.held == small.wanted


def test_equal_rows_of_a_keyless_table_are_numbered_and_others_copied(small: Small) -> None:
    small.declare(key=None, slices=1)
    small.source.put(ship(1, 5), ship(1, 5), ship(2, 65))
    report = small.run(0, 1)
    assert [cell.mode for cell in report.cells] == [Mode.NUMBER, Mode.COPY]
    assert [cell.result.written for cell in report.cells] == [2, 1]


def test_rows_with_a_key_are_never_numbered(small: Small) -> None:
    small.source.put(ship(1, 5), ship(1, 5))
    with pytest.raises(TurnFailed, match="2 rows have only 1 different ids") as failed:
        small.run(0, key_is_known=True)
    assert {cell.mode for cell in failed.value.report.cells} == {Mode.COPY}


def test_a_table_that_was_filled_by_others_is_compared_at_once(small: Small) -> None:
    small.source.put(ship(1, 5), ship(2, 6))
    small.declare(manage="adopt", slices=1)
    table = small.harper.make("Ships", {"id": 1, "n": 1, "ts": "2026-01-05T00:05:00.000000Z"})
    table.attributes += [{"attribute": name} for name in ("n", "name")]
    table.attributes.append({"attribute": "ts", "indexed": True})
    [cell] = small.run(0).cells
    assert cell.mode is Mode.RECONCILE
    assert small.held == small.wanted
