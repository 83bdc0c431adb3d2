"""A poll of the open window moves only cells of which it would change something."""

from datetime import timedelta

from bq_harper_assets.ledger.position import InstantPosition
from bq_harper_assets.ledger.records import Mark
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.ledger_facts import cell_key
from bq_harper_assets.sync.revisit.changed_open_window import open_cells_due
from bq_harper_assets_tests.sync.memory_source import DAY, Small, ship

MINUTE = timedelta(minutes=1)


def due(small: Small) -> list[Cell]:
    return open_cells_due(small.ledger, small.source, small.route.contract, small.cells(0))


def opened(small: Small, minutes: float, lag: str = "0s") -> None:
    small.declare(slices=2, live=True, safety_lag=lag)
    small.source.now = DAY + minutes * MINUTE


def test_a_window_that_the_lag_has_not_reached_is_not_even_asked_about(small: Small) -> None:
    opened(small, 5, "300s")
    small.source.history.append((DAY, [ship(1, 1)]))
    assert due(small) == []
    assert small.source.asked == []
    small.source.now += timedelta(seconds=61)
    assert due(small) == small.cells(0)


def test_an_empty_window_is_due_only_once_it_has_a_row(small: Small) -> None:
    opened(small, 5)
    assert due(small) == []
    small.source.put(ship(1, 1))
    assert due(small) == small.cells(0)


def test_a_window_is_due_only_if_its_rows_changed_since_it_was_committed(small: Small) -> None:
    opened(small, 5)
    small.source.put(ship(1, 1))
    small.run(0)
    small.source.now += MINUTE
    assert due(small) == []
    small.source.put(ship(1, 1), ship(2, 6))
    assert due(small) == small.cells(0)


def test_a_cell_that_is_marked_is_due_though_no_row_came(small: Small) -> None:
    opened(small, 5)
    small.source.put(ship(1, 1))
    first, second = small.cells(0)
    small.run(0)
    route = small.ledger.find_route("ships")
    assert route is not None
    leases = small.ledger.acquire(route, [0, 1], "me", MINUTE)
    later = InstantPosition(small.source.now + MINUTE)
    small.ledger.mark(leases, later, [Mark(cell_key(second), DAY, "a row moved here")])
    assert due(small) == [second]
    small.ledger.release(leases)
    small.ledger.distrust(route, [DAY], epoch=9, batch=9)
    assert due(small) == [first, second]


def test_the_window_is_asked_about_up_to_its_end_at_most(small: Small) -> None:
    opened(small, 90)
    small.source.put(ship(1, 1), ship(2, 61))
    due(small)
    assert small.source.asked == [("fingerprints", (DAY, DAY + 60 * MINUTE))]
    small.source.asked.clear()
    small.source.now = DAY + 30 * MINUTE
    due(small)
    assert small.source.asked == [("fingerprints", (DAY, DAY + 30 * MINUTE))]
