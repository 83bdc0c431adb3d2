"""Dagster's own way to launch runs, which also knows whether their processes still run.

Named in dagster.yaml. Without it Dagster cannot tell a run that was killed from one that works, so
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
    tags_of_place,
    where,
)
from bq_harper_assets.local import processes

LOOK_FOR_PROCESS_S = 5.0
_LOOK_EVERY_S = 0.1


class WatchedRunLauncher(DefaultRunLauncher, ConfigurableClass):
    """Notes host, process id and start time of each run, and answers run monitoring by them."""

    def launch_run(self, context: LaunchRunContext) -> None:
        """The run's process is a child of the code server, which tells its id by an event."""
        run_id = context.dagster_run.run_id
        is_local = _is_local(context)
        if is_local:
            self._instance.add_run_tags(run_id, tags_of_place())
        super().launch_run(context)
        if is_local:
            self._record_process(run_id)

    def terminate(self, run_id: str) -> bool:
        """A run whose process is gone is ended at once: there is nobody left to ask."""
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
        """Yes: of this host's runs by their processes, of others by what they said last."""
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Run monitoring takes every answer but RUNNING for a death, so what is unknown runs."""
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
    """Whether the code server, and so the run, is on this host: then it listens at a socket."""
    origin = context.dagster_run.remote_job_origin
    if context.workspace is None or origin is None:
        return False
    location = context.workspace.get_code_location(origin.location_name)
    return isinstance(location, GrpcServerCodeLocation) and location.client.socket is not None
