"""What is done to a table already, and which of its windows failed lately, by Dagster's runs."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from dagster import DagsterInstance, DagsterRunStatus, job
from dagster._core.test_utils import create_run_for_test

from bq_harper_assets.defs.names import target_key
from bq_harper_assets.defs.partitions import RANGE_END, RANGE_START
from bq_harper_assets.defs.runs.active_runs import (
    PARTITION,
    failed_windows,
    job_is_running,
    last_failure,
    runs_of_table,
    windows_of,
)
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets_tests.defs.test_partitions import START, contract

HOUR = timedelta(hours=1)
SHIPS = contract()
FAILURE, SUCCESS = DagsterRunStatus.FAILURE, DagsterRunStatus.SUCCESS


@job
def sync_ships() -> None:
    """Named as the job of the table is."""


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as made:
        yield made


def _key(hour: int, part: int = 0) -> str:
    return f"{START + hour * HOUR:%FT%H:%M}|s0{part}"


def _range(first: int, last: int) -> dict[str, str]:
    return {RANGE_START: _key(first), RANGE_END: _key(last, 3)}


def _ran(instance: DagsterInstance, status: DagsterRunStatus, **tags: str) -> str:
    return instance.create_run_for_job(sync_ships, status=status, tags=tags).run_id


def _hours(windows: Iterable[Window]) -> list[int]:
    return sorted((each.start - START) // HOUR for each in windows)


def test_runs_that_have_not_ended_are_found_by_their_job_or_by_the_asset(
    instance: DagsterInstance,
) -> None:
    asked = _ran(instance, DagsterRunStatus.NOT_STARTED)
    _ran(instance, SUCCESS)
    started = DagsterRunStatus.STARTED
    create_run_for_test(instance, job_name="another", status=started)
    together = create_run_for_test(
        instance,
        job_name="another",
        status=started,
        asset_selection=frozenset({target_key(SHIPS)}),
    )
    assert {run.run_id for run in runs_of_table(instance, SHIPS)} == {asked, together.run_id}
    assert job_is_running(instance, "sync_ships")
    assert not job_is_running(instance, "live_ships")


def test_a_run_is_for_one_partition_a_range_of_them_or_none(instance: DagsterInstance) -> None:
    for tags, hours in (({PARTITION: _key(3, 1)}, [3]), (_range(1, 4), [1, 2, 3, 4]), ({}, [])):
        run = instance.get_run_by_id(_ran(instance, SUCCESS, **tags))
        assert run
        assert _hours(windows_of(SHIPS, run)) == hours


def test_a_window_has_failed_if_its_last_run_did(instance: DagsterInstance) -> None:
    began = datetime.now(UTC) - HOUR
    _ran(instance, FAILURE, **_range(0, 3))
    _ran(instance, SUCCESS, **_range(1, 1))
    _ran(instance, FAILURE, **{PARTITION: "2026-11-15T00:17|s00"})  # of windows as they were once
    assert _hours(failed_windows(instance, SHIPS, began)) == [0, 2, 3]
    assert failed_windows(instance, SHIPS, datetime.now(UTC) + HOUR) == frozenset()


def test_only_the_newest_run_of_a_job_counts_as_its_failure(instance: DagsterInstance) -> None:
    assert last_failure(instance, "sync_ships") is None
    _ran(instance, FAILURE)
    found = last_failure(instance, "sync_ships")
    assert found is not None
    assert datetime.now(UTC) - found < HOUR
    _ran(instance, SUCCESS)
    assert last_failure(instance, "sync_ships") is None
