"""The process of a run is known again, and no other is taken for it."""

import subprocess
import time
from collections.abc import Callable

import pytest
from dagster import (
    DagsterInstance,
    DagsterRunStatus,
)

from bq_harper_assets.defs.runs.dead_runs import end_dead_runs
from bq_harper_assets.defs.runs.run_process import (
    GONE_AFTER_S,
    HOST,
    MACHINE,
    RUN,
    SEEN,
    Pulse,
    pulse_of,
)
from bq_harper_assets.local import processes
from bq_harper_assets_tests.defs.test_run_launcher import (
    again,
    found,
    instance,
    kill,
    monitor,
    run_in,
    start,
)

__all__ = ["instance", "start"]


def test_another_process_with_the_same_number_is_not_the_run(
    instance: DagsterInstance, start: Callable[[], "subprocess.Popen[bytes]"]
) -> None:
    process = found(start())
    run = run_in(instance, recorded=process.model_copy(update={"started": "before the reboot 1"}))
    assert pulse_of(instance, run) is Pulse.GONE
    assert end_dead_runs(instance) == [run]


def seconds_ago(seconds: float) -> str:
    return f"{time.time() - seconds:.0f}"


@pytest.mark.parametrize(
    "elsewhere",
    [
        {HOST: "another-host"},
        {HOST: f"{processes.here()} pid:[4026532999]"},  # a container
        {MACHINE: "of the same name"},
    ],
)
def test_a_run_of_another_host_is_dead_once_it_has_said_nothing_for_long(
    instance: DagsterInstance,
    start: Callable[[], "subprocess.Popen[bytes]"],
    elsewhere: dict[str, str],
) -> None:
    process = start()
    recorded = found(process)
    kill(process)
    silent = run_in(instance, recorded=recorded, **elsewhere)  # of an earlier version
    just_seen = {SEEN: seconds_ago(GONE_AFTER_S - 30)}
    works = run_in(instance, recorded=recorded, **elsewhere, **just_seen)
    long_ago = {SEEN: seconds_ago(GONE_AFTER_S + 1)}
    gone = run_in(instance, recorded=recorded, **elsewhere, **long_ago)
    assert pulse_of(instance, silent) is Pulse.UNKNOWN
    assert pulse_of(instance, works) is Pulse.ALIVE
    assert pulse_of(instance, gone) is Pulse.GONE
    monitor(instance)
    assert end_dead_runs(instance) == []
    for run in (silent, works):
        assert again(instance, run).status is DagsterRunStatus.STARTED
    assert again(instance, gone).status is DagsterRunStatus.FAILURE
    said = [entry.message for entry in instance.all_logs(gone.run_id)]
    assert any(", last seen at " in line for line in said)


def test_a_run_of_nobody_knows_where_is_never_called_dead(instance: DagsterInstance) -> None:
    run = run_in(instance)
    monitor(instance)
    assert end_dead_runs(instance) == []
    assert again(instance, run).status is DagsterRunStatus.STARTED


def test_a_run_that_is_executed_again_is_not_judged_by_the_process_of_the_first(
    instance: DagsterInstance, start: Callable[[], "subprocess.Popen[bytes]"]
) -> None:
    process = start()
    first = run_in(instance, recorded=found(process))
    kill(process)
    instance.add_run_tags(first.run_id, {SEEN: seconds_ago(GONE_AFTER_S + 1)})
    first = again(instance, first)
    second = run_in(instance, **{key: first.tags[key] for key in first.tags if "bqh/" in key})
    elsewhere = run_in(instance, **{**second.tags, HOST: "another-host"})
    assert second.tags[RUN] == first.run_id
    assert pulse_of(instance, first) is Pulse.GONE
    assert pulse_of(instance, second) is Pulse.UNKNOWN
    assert pulse_of(instance, elsewhere) is Pulse.UNKNOWN
