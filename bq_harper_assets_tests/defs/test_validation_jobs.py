"""Which cells a validation looks at: those its run names, the newest ones, or whose turn it is."""

from datetime import timedelta
from pathlib import Path

import pytest
from dagster import RunRequest, build_schedule_context
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.defs.checks.deep_proofs import (
    DayProof,
    build_deep_proof_job,
    build_deep_proof_schedule,
    whose_turn,
)
from bq_harper_assets.defs.checks.validation_jobs import named_cells, newest_cells
from bq_harper_assets.defs.resources import LEDGER_URLS, LedgerResource
from bq_harper_assets.ledger.records import CellKey, CellResult, Mode, Wanted
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets_tests.defs.test_partitions import contract
from bq_harper_assets_tests.stores.small_tables import utc

START = utc(2026, 11, 1)


def test_a_run_names_one_partition_or_the_corners_of_many_or_none() -> None:
    table = contract(slices=3)
    one = named_cells(table, "2026-11-16T12:00|s01", None)
    assert [cell.key for cell in one or ()] == ["2026-11-16T12:00|s01"]
    corners = "2026-11-16T23:00|s01", "2026-11-17T00:00|s02"
    assert [cell.key for cell in named_cells(table, *corners) or ()] == [
        "2026-11-16T23:00|s01",
        "2026-11-16T23:00|s02",
        "2026-11-17T00:00|s01",
        "2026-11-17T00:00|s02",
    ]
    assert named_cells(table, None, None) is None
    with pytest.raises(ValueError, match="does not name a cell"):
        named_cells(table, "2026-11-16T12:00|s1", None)
    with pytest.raises(ValueError, match="there is no first"):
        named_cells(table, None, "2026-11-16T12:00|s01")


def test_what_is_synced_of_the_newest_closed_windows_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = contract(slices=2)
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    monkeypatch.setitem(LEDGER_URLS, url, SecretStr(url))
    resource = LedgerResource(place=url)
    assert newest_cells(resource, table, 2, utc(2026, 11, 16, 13)) == []
    with resource.open() as ledger:
        facts = table_facts(table, BigQueryConnection(project="p"))
        known = ledger.register_table(facts)
        ledger.record_schema(known, {"columns": []}, 0)
        leases = ledger.acquire(known, [0, 1], "a run", timedelta(minutes=1))
        hours = [utc(2026, 11, 16, hour) for hour in (9, 10, 11, 12)]
        cells = [CellKey(hour, hour + table.window, part) for hour in hours for part in (0, 1)]
        wanted = [Wanted(cell=cell, mode=Mode.COPY, fingerprint="fp") for cell in cells]
        batches = ledger.plan(leases, utc(2026, 11, 16, 13), 1, wanted, "run")
        # The last but two has not come to its end.
        done = [
            (batch, CellResult(read=1, written=1, unchanged=0, quarantined=0, digest="d"))
            for batch in (*batches[:5], *batches[6:])
        ]
        ledger.commit_cells(leases, done)
    newest = newest_cells(resource, table, 2, utc(2026, 11, 16, 13, 0))  # 12:00 is not settled yet
    assert [cell.key for cell in newest] == [
        "2026-11-16T10:00|s00",
        "2026-11-16T10:00|s01",
        "2026-11-16T11:00|s00",
    ]


@pytest.mark.promise("M13")
@settings(deadline=None)
@given(
    days=st.integers(1, 40),
    scrub=st.integers(1, 9),
    failed=st.sets(st.integers(0, 29)),
    told=st.booleans(),  # of a failed night: one that left no notes shows once days are late
    minutes=st.lists(st.integers(0, 300), min_size=30, max_size=30),
)
def test_each_day_is_proved_within_the_scrub_period_and_a_failed_night_is_caught_up_by_the_next(
    days: int, scrub: int, failed: set[int], told: bool, minutes: list[int]
) -> None:
    table = contract(scrub=f"{scrub}d")
    share = -(-days // scrub)
    synced = DayProof(START - timedelta(minutes=1))
    looks = {START.date() + timedelta(days=n): synced for n in range(days)}
    behind = 0  # nights
    for number in range(30):
        night = START + timedelta(days=number)
        turn = whose_turn(table, looks, night)
        assert len(set(turn)) == len(turn) <= 2 * share
        if number in failed:
            behind += 1
            if told:
                looks |= {day: DayProof(looks[day].at, night) for day in turn}
            continue
        behind = max(0, behind - 1)  # it makes up for one night besides its own
        looks |= dict.fromkeys(turn, DayProof(night + timedelta(minutes=minutes[number])))
        if not behind and (told or failed.isdisjoint(range(number - scrub, number))):
            assert all(night - look.at < table.scrub for look in looks.values())


def test_a_day_that_can_never_be_judged_is_tried_each_night_and_holds_up_no_other() -> None:
    table = contract(scrub="9d")
    days = [START.date() + timedelta(days=n) for n in range(9)]
    looks = {day: DayProof(START) for day in days}
    stuck = days[3]
    for number in range(30):
        night = START + timedelta(days=number)
        turn = whose_turn(table, looks, night)
        assert number < 4 or stuck in turn
        for day in turn:
            looks[day] = DayProof(START, night) if day == stuck else DayProof(night)
        assert all(night - looks[day].at < table.scrub for day in days if day != stuck)


def test_days_that_were_not_judged_take_turns_and_none_waits_for_one_that_never_can_be() -> None:
    table = contract(scrub="9d")
    days = [START.date() + timedelta(days=n) for n in range(9)]
    looks = {day: DayProof(START) for day in days}
    stuck, moved = days[3], days[5]
    turns = dict.fromkeys(days, 0)
    for number in range(1, 30):
        night = START + timedelta(days=number)
        for day in whose_turn(table, looks, night):
            turns[day] += 1
            in_vain = day == stuck or (day == moved and turns[day] == 1)
            looks[day] = DayProof(START, night) if in_vain else DayProof(night)
        assert all(night - looks[day].at < table.scrub for day in days if day != stuck)
    assert turns[stuck] > 20


def test_a_night_asks_for_one_run() -> None:
    table = contract()
    schedule = build_deep_proof_schedule(table, build_deep_proof_job(table))
    request = schedule(build_schedule_context(scheduled_execution_time=utc(2026, 11, 16, 3, 30)))
    assert isinstance(request, RunRequest)
    assert request.run_key == "2026-11-16"
