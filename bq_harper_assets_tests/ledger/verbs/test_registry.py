"""A table is registered once, and what its cells mean does not change."""

import re
from dataclasses import replace

import pytest

from bq_harper_assets.ledger.errors import (
    LeaseHeld,
    TableChanged,
)
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets_tests.ledger.sample import (
    FACTS,
    HOUR,
    TTL,
    T,
    cell,
    copy,
)


def test_a_table_registered_again_is_the_same_table(ledger: Ledger, table: LedgerRoute) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    assert ledger.register_route(FACTS) == table == ledger.find_route("positions")
    assert ledger.leases(table)[0].epoch == leases.held[0].epoch
    assert ledger.find_route("unheard-of") is None


CHANGES = [
    (
        replace(FACTS, slices=8),
        "declared with 8 slices and was synced with 4.*: bqh slices set positions 8",
    ),
    (
        replace(FACTS, slices=8, key=()),
        "slices was 4 and is 8.*slices alone can be changed, by: bqh slices set positions 8",
    ),
    (replace(FACTS, window=24 * HOUR), "window was 60m and is 1d"),
    (replace(FACTS, key=()), "key was mmsi, ts and is the whole row"),
    (replace(FACTS, source="fleet.other"), "source was fleet.positions and is fleet.other"),
    (replace(FACTS, target="Other"), "targetTable was Positions and is Other"),
    (replace(FACTS, timestamp_column="at"), "timestampColumn was ts and is at"),
    (replace(FACTS, name="copycat"), "Positions, which holds the rows of positions"),
]


def test_a_table_whose_cells_would_change_their_meaning_is_refused(
    ledger: Ledger, table: LedgerRoute
) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    ledger.plan(leases, T, 1, [copy(cell(0))], "run")
    for changed, why in CHANGES:
        with pytest.raises(TableChanged, match=why):
            ledger.register_route(changed)
        assert re.search(why, str(ledger.refused_change(changed)))
    assert ledger.routes() == (table,)
    assert ledger.refused_change(FACTS) is None


def test_a_table_of_which_nothing_was_planned_can_be_declared_anew(
    ledger: Ledger, table: LedgerRoute
) -> None:
    """The first run of a wrong declaration fails, and must not make it the only right one."""
    ledger.record_start("positions", T)
    for changed, _ in CHANGES[:-1]:
        assert ledger.refused_change(changed) is None
        anew = ledger.register_route(changed)
        assert (anew.id, anew.facts) == (table.id, changed)
        assert len(ledger.leases(anew)) == changed.slices
        assert ledger.newest_schema(anew) is None
    assert ledger.start_of("positions") is None  # it was that of the other column
    leases = ledger.acquire(ledger.register_route(FACTS), [0], "ann", TTL)
    with pytest.raises(LeaseHeld):
        ledger.register_route(CHANGES[0][0])
    ledger.release(leases)
    with pytest.raises(TableChanged, match=CHANGES[-1][1]):
        ledger.register_route(CHANGES[-1][0])


def test_a_declaration_is_in_the_audit_and_its_leases_go_on(ledger: Ledger) -> None:
    table = ledger.register_route(FACTS)
    assert ledger.register_route(FACTS) == table
    anew = ledger.register_route(replace(FACTS, source="fleet.other"))
    entries = ledger.audit(table, kind="register")
    assert [(each.subject, each.outcome, each.detail) for each in entries] == [
        ("Positions", "declared anew", {"source": "fleet.other"}),
        ("Positions", "ok", {"source": "fleet.positions"}),
    ]
    assert {lease.epoch for lease in ledger.leases(anew)} == {1}


def test_a_start_is_forgotten_only_with_the_column_that_it_is_of(
    ledger: Ledger, table: LedgerRoute
) -> None:
    assert ledger.record_start("positions", T) == T
    assert ledger.record_start("positions", T + HOUR) == T
    ledger.record_start("calls", T + HOUR)
    ledger.register_route(replace(FACTS, window=24 * HOUR))
    assert ledger.starts() == {"positions": T, "calls": T + HOUR}
    ledger.register_route(replace(FACTS, timestamp_column="at"))
    assert ledger.starts() == {"calls": T + HOUR}
    assert ledger.begin_earlier("calls", T) == T
    assert ledger.begin_earlier("others", T + HOUR) == T + HOUR
    assert ledger.starts() == {"calls": T, "others": T + HOUR}
