"""Dagster's own launcher is extended so that it knows whether the processes of runs still run.

dagster.yaml names it. Without it Dagster cannot tell a run that was killed from one that works, so
that it would be "running", and count against every limit, for ever.
"""

import time

from dagster import DefaultRunLauncher
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, WorkerStatus
from dagster._core.remote_representation.code_location import GrpcServerCodeLocation
from dagster._core.storage.dagster_run import DagsterRun
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._serdes import ConfigurableClass

from bq_harper_assets.defs.runs.run_process import (
    RUN,
    Pulse,
    gone,
    launched_process,
    pulse_of,
    tags_of,
    tags_of_host,
    where,
)
from bq_harper_assets.local import processes

LOOK_FOR_PROCESS_S = 5.0
_LOOK_EVERY_S = 0.1


class WatchedRunLauncher(DefaultRunLauncher, ConfigurableClass):
    """This launcher notes host, process id and start time of each run, for run monitoring."""

    def launch_run(self, context: LaunchRunContext) -> None:
        """Launches the run as a child of the code server, which tells its id by an event."""
        run_id = context.dagster_run.run_id
        is_local = _is_local(context)
        if is_local:
            self._instance.add_run_tags(run_id, tags_of_host())
        super().launch_run(context)
        if is_local:
            self._record_process(run_id)

    def terminate(self, run_id: str) -> bool:
        """Ends a run; at once if its process is gone, for there is nobody left to ask."""
        run = self._instance.get_run_by_id(run_id)
        is_gone = run is not None and pulse_of(self._instance, run) is Pulse.GONE
        # Again, for it may have ended while its process was looked for.
        run = self._instance.get_run_by_id(run_id)
        if run and not run.is_finished and is_gone:
            self._instance.report_run_canceled(run, gone(run))
            return True
        if run and not run.is_finished and RUN in run.tags and GRPC_INFO_TAG not in run.tags:
            # `bqh` executes it and has no server to ask: it watches the status of its own run.
            self._instance.report_run_canceling(run)
            return True
        return bool(super().terminate(run_id))  # type: ignore[no-untyped-call]

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Says yes: runs of this host are judged by their process, others by their last word."""
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Says RUNNING also if that is unknown: run monitoring takes all else for a death."""
        if pulse_of(self._instance, run) is Pulse.GONE:
            return CheckRunHealthResult(WorkerStatus.FAILED, gone(run))
        return CheckRunHealthResult(WorkerStatus.RUNNING, where(run))

    def _record_process(self, run_id: str) -> None:
        give_up = time.monotonic() + LOOK_FOR_PROCESS_S
        while time.monotonic() < give_up:
            launched = launched_process(self._instance, run_id)
            process = processes.find_process(launched.pid) if launched else None
            if process:
                self._instance.add_run_tags(run_id, tags_of(run_id, process))
            if launched:
                return  # also if it has ended already: then the event alone tells who it was
            time.sleep(_LOOK_EVERY_S)


def _is_local(context: LaunchRunContext) -> bool:
    """Says whether the code server, and so the run, is on this host, where it has a socket."""
    origin = context.dagster_run.remote_job_origin
    if context.workspace is None or origin is None:
        return False
    location = context.workspace.get_code_location(origin.location_name)
    return isinstance(location, GrpcServerCodeLocation) and location.client.socket is not None
