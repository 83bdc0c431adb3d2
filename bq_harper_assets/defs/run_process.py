"""The process of a run: recorded in the run's tags, and found there again by whoever asks for it.

A run that `bqh` starts has the tags from its creation on. A run that Dagster launches gets them
from our launcher; until then Dagster's own event names the process id.
"""

import os
from enum import Enum

from dagster import DagsterEventType, DagsterInstance, DagsterRun

from bq_harper_assets.local import processes
from bq_harper_assets.local.processes import Process

HOST, PID, STARTED = "bqh/host", "bqh/pid", "bqh/started"
# The run that the process is of: a run that is executed again inherits the tags of the first.
RUN = "bqh/run"
_EVENTS = 20  # at a run's start, among which Dagster names the process


class Pulse(Enum):
    """Whether the process of a run still runs."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"  # on another host, or not recorded


def tags_of(run_id: str, process: Process) -> dict[str, str]:
    """What the run's tags say of its process."""
    return {
        HOST: processes.here(),
        PID: str(process.pid),
        STARTED: process.started,
        RUN: run_id,
    }


def tags_of_this_process(run_id: str) -> dict[str, str]:
    """For a run that this process executes itself."""
    process = processes.find(os.getpid())
    assert process is not None
    return tags_of(run_id, process)


def pulse_of(instance: DagsterInstance, run: DagsterRun) -> Pulse:
    """By host, process id and start time; a process of another host is never called gone."""
    if run.tags.get(HOST) != processes.here():
        return Pulse.UNKNOWN
    recorded = _recorded(run)
    if recorded:
        return Pulse.ALIVE if processes.find(recorded.pid) == recorded else Pulse.GONE
    # Launched from here, and the launcher died before it wrote the tags.
    pid = launched_pid(instance, run.run_id)
    if pid is None:
        return Pulse.UNKNOWN
    return Pulse.ALIVE if processes.find(pid) else Pulse.GONE


def where(run: DagsterRun) -> str:
    """The process and its host, in words."""
    host = run.tags.get(HOST)
    recorded = _recorded(run)
    if not host:
        return "a process that was not recorded"
    return f"process {recorded.pid} on {host}" if recorded else f"a process on {host}"


def launched_pid(instance: DagsterInstance, run_id: str) -> int | None:
    """The process id that Dagster has noted for a run that it launched; None if it has not yet."""
    events = instance.event_log_storage.get_logs_for_run(
        run_id, of_type=DagsterEventType.ENGINE_EVENT, limit=_EVENTS
    )
    for entry in events:
        event = entry.get_dagster_event()
        pid = event.engine_event_data.metadata.get("pid")
        if pid is not None:
            return int(str(pid.value))
    return None


def _recorded(run: DagsterRun) -> Process | None:
    if run.tags.get(RUN) != run.run_id:
        return None
    return Process(pid=int(run.tags[PID]), started=run.tags[STARTED])
