"""How far a table is, read from its ledger."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bq_harper_assets.cli.output.table_status import HeldSlice, table_state
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.records import CellKey, LedgerRoute, Mode, Rejection, Wanted
from bq_harper_assets_tests.defs.test_partitions import contract
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.ledger.sample import FACTS, HOUR, START, TTL, T, cell, copy, result

LAG = timedelta(minutes=1)
SYNC = {"start_timestamp": START, "catchup_threshold": 7_200, "steady_threshold": 3_600}
SHIPS = contract(
    id=FACTS.name,
    target_table="Ships",
    timestamp_column="seen",
    slices=4,
    safety_lag=LAG,
    sync=SYNC,
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(empty_ledger(tmp_path / "ledger.db")) as made:
        yield made


def registered(ledger: Ledger) -> LedgerRoute:
    table = ledger.register_route(FACTS)
    ledger.record_schema(table, {"columns": []}, 0)
    return table


def test_a_table_that_was_never_synced_has_cells_to_sync_and_nothing_else(ledger: Ledger) -> None:
    found = table_state(SHIPS, ledger, START + 3 * HOUR)
    assert (found.table, found.target, found.timestamp_column) == ("positions", "Ships", "seen")
    assert found.cells_due == 2 * 4  # the third window closes a minute later
    assert table_state(SHIPS, ledger, START + 3 * HOUR + LAG).cells_due == 3 * 4
    assert (found.cells, found.synced_until, found.workers) == ({}, None, ())
    assert not found.is_at_work
    counted = (found.cells_before_start, found.batch_size, found.windows_per_run)
    assert (*counted, found.rows, found.quarantined) == (0, 0, 0, 0, 0)
    without_start = SHIPS.model_copy(update={"sync": contract().sync})
    assert table_state(without_start, ledger, START + 3 * HOUR).cells_due == 0


def test_figures_are_those_of_the_ledger(ledger: Ledger) -> None:
    table = registered(ledger)
    leases = ledger.acquire(table, [0, 1, 2, 3], "run-1", TTL)
    hours = [cell(hour, part) for hour in (0, 1) for part in range(4)]
    opened = CellKey.of_window(START + 2 * HOUR, START + 3 * HOUR, 0)
    half = Wanted(cell=opened, mode=Mode.COPY, fingerprint="fp", upto=START + 2.5 * HOUR)
    batches = list(ledger.plan(leases, T, 1, [*map(copy, hours), half], "run-1"))
    *done, fails, last = batches
    ledger.commit_cells(leases, [(each, result(10, Rejection("1", "bad", "{}"))) for each in done])
    ledger.commit_cells(leases, [(last, result(5))])
    ledger.fail_batch(fails, "no")
    now = START + 2 * HOUR + timedelta(minutes=40)
    found = table_state(SHIPS, ledger, now)
    assert (found.cells_due, found.cells, found.cells_open) == (
        8,
        {"synced": 7, "failed": 1},
        {"synced": 1},
    )
    assert (found.open_upto, found.cells_before_start) == (START + 2.5 * HOUR, 0)
    assert (found.rows, found.quarantined, found.newest_t) == (68, 7, T)
    assert (found.synced_until, found.lag_s) == (START + HOUR, 6_000.0)
    assert (found.phase, found.batch_size) == ("catchup", SHIPS.sync.catchup_batch_size)
    assert found.windows_per_run > 0
    assert found.next_poll_within_s
    assert found.due == {"failed": 1}
    assert found.declared_otherwise is None
    assert found.rows_outside is None
    assert [each.owner for each in found.workers] == ["run-1"]
    assert found.is_at_work
    held = ledger.leases(table)
    assert found.leases == tuple(HeldSlice(each.slice, "run-1", each.expires_at) for each in held)
    assert [(each.slice, each.synced_until, each.rows) for each in found.slices] == [
        ("s00", START + 2.5 * HOUR, 23),
        ("s01", START + 2 * HOUR, 18),
        ("s02", START + 2 * HOUR, 18),
        ("s03", START + HOUR, 9),
    ]
    assert [(each.lag_s, each.phase) for each in found.slices] == [
        (600.0, "steady"),
        (2_400.0, "steady"),
        (2_400.0, "steady"),
        (6_000.0, "catchup"),
    ]
    assert found.slices[3].batch_size == SHIPS.sync.catchup_batch_size
    ledger.release(leases)
    assert table_state(SHIPS, ledger, now).leases == ()


def test_the_open_window_is_synced_as_far_as_its_slice_that_is_least_far(ledger: Ledger) -> None:
    table = registered(ledger)
    leases = ledger.acquire(table, [0, 1], "run-1", TTL)
    quarter = timedelta(minutes=15)
    wanted = [
        Wanted(cell=cell(0, part), mode=Mode.COPY, fingerprint="fp", upto=START + upto)
        for part, upto in ((0, 2 * quarter), (1, quarter))
    ]
    batches = ledger.plan(leases, T, 1, wanted, "run-1")
    ledger.commit_cells(leases, [(each, result(1)) for each in batches])
    assert table_state(SHIPS, ledger, START + HOUR / 2).open_upto == START + quarter
    ledger.release(leases)
    later = ledger.acquire(table, [1], "run-2", timedelta(microseconds=1))
    assert table_state(SHIPS, ledger, START + HOUR / 2).leases == ()  # it has run out
    assert later.owner == "run-2"


def test_a_clock_that_is_behind_makes_no_negative_lag(ledger: Ledger) -> None:
    table = registered(ledger)
    leases = ledger.acquire(table, [0, 1, 2, 3], "run-1", TTL)
    batches = ledger.plan(leases, T, 1, [copy(cell(0, part)) for part in range(4)], "run-1")
    ledger.commit_cells(leases, [(each, result(10)) for each in batches])
    found = table_state(SHIPS, ledger, START + HOUR / 2)
    assert found.lag_s == 0
    assert {each.lag_s for each in found.slices} == {0}


def test_cells_before_the_first_window_are_counted_apart(ledger: Ledger) -> None:
    table = registered(ledger)
    leases = ledger.acquire(table, [0], "run-1", TTL)
    batches = ledger.plan(leases, T, 1, [copy(cell(0)), copy(cell(1)), copy(cell(2))], "run-1")
    ledger.commit_cells(leases, [(each, result(10)) for each in batches])
    later = {"sync": SHIPS.sync.model_copy(update={"start_timestamp": START + 2 * HOUR})}
    found = table_state(SHIPS.model_copy(update=later), ledger, START + 4 * HOUR)
    assert (found.cells_before_start, found.cells) == (2, {"synced": 1})


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        (
            {"window": "1d"},
            "config/tables.yaml says window: 1d, and the table is synced by windows of 60m, which"
            " cannot be changed: write window: 60m",
        ),
        (
            {"slices": 3},
            "config/tables.yaml says slices: 3, and the table is synced with 4; type: bqh slices"
            " set positions 3",
        ),
    ],
)
def test_a_table_that_is_declared_otherwise_is_counted_as_it_is_synced(
    ledger: Ledger, declared: dict[str, object], says: str
) -> None:
    registered(ledger)
    known = {"id": FACTS.name, "slices": 4, "safety_lag": LAG, "sync": SYNC}
    found = table_state(contract(**{**known, **declared}), ledger, START + 3 * HOUR)
    assert found.declared_otherwise == says
    assert (found.cells_due, found.due) == (8, {})
