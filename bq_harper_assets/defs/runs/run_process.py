"""The process of a run is recorded in the run's tags, where whoever asks for it finds it.

A run that `bqh` starts has the tags from its creation on. A run that Dagster launches on this host
gets them from our launcher; until then Dagster's own event names the process id. Any other run
writes them itself, once its first step works. From then on the run also says each minute that it
was seen, which is all that another host can judge it by.
"""

import os
import time
from datetime import UTC, datetime
from enum import Enum
from typing import NamedTuple

from dagster import DagsterEventType, DagsterInstance, DagsterRun

from bq_harper_assets.local import processes
from bq_harper_assets.local.processes import Process

HOST, MACHINE, PID, STARTED = "bqh/host", "bqh/machine", "bqh/pid", "bqh/started"
# The run that the process is of: a run that is executed again inherits the tags of the first.
RUN = "bqh/run"
SEEN = "bqh/seen"  # when its process last said that it works, in seconds since 1970
IS_GONE = "Its process is gone"
GONE_AFTER_S = 300.0  # without a word: five that should have come
_EVENTS = 20  # at a run's start, among which Dagster names the process
_CLOCK_STEP_S = 5.0  # the kernel's start times and the events' are not of one clock


class Pulse(Enum):
    """The pulse says whether the process of a run still runs."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"  # on another host and without a word of its own, or not recorded


class LaunchedProcess(NamedTuple):
    """Dagster has noted this process for a run at this time."""

    pid: int
    noted_at: float


def tags_of_host() -> dict[str, str]:
    """Gives the tags that name this host."""
    return {HOST: processes.here(), MACHINE: processes.machine()}


def tags_of(run_id: str, process: Process) -> dict[str, str]:
    """Gives the tags that name the process of a run."""
    return {
        **tags_of_host(),
        PID: str(process.pid),
        STARTED: process.started,
        RUN: run_id,
    }


def tags_of_this_process(run_id: str) -> dict[str, str]:
    """Gives the tags of a run that this process executes itself."""
    process = processes.find_process(os.getpid())
    assert process is not None
    return tags_of(run_id, process)


def note_seen(instance: DagsterInstance, run: DagsterRun) -> None:
    """Notes, from the process of the run, that it works."""
    told = {} if _recorded(run) else tags_of_this_process(run.run_id)
    instance.add_run_tags(run.run_id, {**told, SEEN: f"{time.time():.0f}"})


def pulse_of(instance: DagsterInstance, run: DagsterRun) -> Pulse:
    """Judges runs of this host by process id and start time, others by what they said last."""
    recorded = _recorded(run)
    if not _is_here(run):
        seen = last_seen(run)
        if seen is None:
            return Pulse.UNKNOWN
        return Pulse.ALIVE if time.time() - seen < GONE_AFTER_S else Pulse.GONE
    if recorded:
        return Pulse.ALIVE if processes.find_process(recorded.pid) == recorded else Pulse.GONE
    # Launched from here, and the launcher died before it wrote the tags.
    launched = launched_process(instance, run.run_id)
    if launched is None:
        return Pulse.UNKNOWN
    began = processes.start_time(launched.pid)
    is_it = began is not None and began <= launched.noted_at + _CLOCK_STEP_S
    return Pulse.ALIVE if is_it else Pulse.GONE


def where(run: DagsterRun) -> str:
    """Names the process and its host in words."""
    host = run.tags.get(HOST)
    recorded = _recorded(run)
    if not host:
        return "a process that was not recorded"
    told = f"process {recorded.pid} on {host}" if recorded else f"a process on {host}"
    seen = last_seen(run)
    if seen is None or _is_here(run):
        return told
    return f"{told}, last seen at {datetime.fromtimestamp(seen, UTC):%T} UTC"


def gone(run: DagsterRun) -> str:
    """Says why a run is ended that did not end itself."""
    return f"{IS_GONE}: {where(run)}."


def launched_process(instance: DagsterInstance, run_id: str) -> LaunchedProcess | None:
    """Finds the process that Dagster has noted for a run that it launched; None before that."""
    events = instance.event_log_storage.get_logs_for_run(
        run_id, of_type=DagsterEventType.ENGINE_EVENT, limit=_EVENTS
    )
    for entry in events:
        event = entry.get_dagster_event()
        pid = event.engine_event_data.metadata.get("pid")
        if pid is not None:
            return LaunchedProcess(int(str(pid.value)), entry.timestamp)
    return None


def _is_here(run: DagsterRun) -> bool:
    """Says whether process ids of the run's host are those of this one."""
    ours = tags_of_host()
    # A run of an earlier version has no tag of its machine.
    return {HOST: run.tags.get(HOST), MACHINE: run.tags.get(MACHINE, ours[MACHINE])} == ours


def _recorded(run: DagsterRun) -> Process | None:
    if run.tags.get(RUN) != run.run_id:
        return None
    return Process(pid=int(run.tags[PID]), started=run.tags[STARTED])


def last_seen(run: DagsterRun) -> float | None:
    """Says when the run was last seen at work, in seconds since 1970; None if it never was."""
    if run.tags.get(RUN) != run.run_id or SEEN not in run.tags:
        return None
    return float(run.tags[SEEN])
