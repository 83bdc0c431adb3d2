"""Whose turn it is in the round of deep proofs, night by night."""

from datetime import timedelta

import pytest
from dagster import RunRequest, build_schedule_context
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.defs.checks.deep_proofs import (
    DayProof,
    build_deep_proof_job,
    build_deep_proof_schedule,
    whose_turn,
)
from bq_harper_assets_tests.defs.test_partitions import contract
from bq_harper_assets_tests.stores.small_tables import utc

START = utc(2026, 11, 1)


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
