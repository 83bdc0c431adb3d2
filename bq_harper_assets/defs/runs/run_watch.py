"""A watch beside a run, in its process, says that it works, and hears of Terminate in the UI.

A thread of its own asks Dagster's storage, which may be slow or away: neither must hold up the run.
"""

import threading
import time
from contextlib import suppress

from dagster import DagsterInstance, DagsterRunStatus

from bq_harper_assets.defs.runs.run_process import note_seen

_ASK_EVERY_S = 2.0  # whether somebody has clicked on Terminate
SEEN_EVERY_S = 60.0
TO_END = (DagsterRunStatus.CANCELING, DagsterRunStatus.CANCELED)

_WATCHES: "dict[str, RunWatch]" = {}


class RunWatch:
    """This watches a run from its first step, or before it, to its end; also between its steps."""

    def __init__(self, instance: DagsterInstance, run_id: str) -> None:
        self._instance = instance
        self._run_id = run_id
        self._to_end = threading.Event()
        self._over = threading.Event()
        self._is_known = False
        self._seen_at: float | None = None
        threading.Thread(target=self._watch, daemon=True, name="bqh-run-watch").start()

    @property
    def is_to_end(self) -> bool:
        """Says whether Dagster has the run as one that is to be cancelled."""
        return self._to_end.is_set()

    def end(self) -> None:
        """Ends the watch: it says nothing more of the run."""
        self._over.set()
        _WATCHES.pop(self._run_id, None)

    def _watch(self) -> None:
        while not self._over.is_set():
            with suppress(Exception):  # a storage that is away must not end a run that works
                self._look()
            self._over.wait(_ASK_EVERY_S)

    def _look(self) -> None:
        run = self._instance.get_run_by_id(self._run_id)
        if run is None:
            if self._is_known:  # and was deleted
                self.end()
            return
        self._is_known = True
        if run.status in TO_END:
            self._to_end.set()
        if run.is_finished:
            self.end()
        elif self._seen_at is None or time.monotonic() - self._seen_at >= SEEN_EVERY_S:
            note_seen(self._instance, run)
            self._seen_at = time.monotonic()


def watch(instance: DagsterInstance, run_id: str) -> RunWatch:
    """Gives the watch of this run, and begins it if there is none."""
    found = _WATCHES.get(run_id)
    if found is None:
        found = _WATCHES[run_id] = RunWatch(instance, run_id)
    return found
