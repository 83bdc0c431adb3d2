"""A run ends early by a signal to `bqh`, or by Terminate in the UI.

The work is done in a thread of its own, so that the main thread is free to hear of it. It has ten
seconds to end by itself and is then left behind, uncommitted: the lease that it held expires.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from datetime import datetime, timedelta
from types import FrameType
from typing import Generic, TypeVar

from dagster import (
    AssetExecutionContext,
    DagsterExecutionInterruptedError,
    DagsterInstance,
    Failure,
    OpExecutionContext,
)

from bq_harper_assets.activity import doing
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.runs.run_watch import TO_END, RunWatch, watch
from bq_harper_assets.errors import Stopped
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.lease.keeper import LEASE_LASTS
from bq_harper_assets.sync.ledger_facts import cell_key
from bq_harper_assets.sync.stop_request import Stop

ENDS_WITHIN_S = 10.0  # of the fifteen seconds; the rest is for Dagster and the process itself
_LOOK_EVERY_S = 0.2  # whether the work is over
_ANSWERS_WITHIN_S = 3.0  # Dagster's storage and the ledger, of a run that is to end
HEARD = (signal.SIGINT, signal.SIGTERM)
INTERRUPTS = (DagsterExecutionInterruptedError, KeyboardInterrupt)
# Where the ledger gives no answer.
IN_SHORT = "stopped; what is committed is safe, the rest is written again by the next run"
ENDED_AT_ONCE = (
    "ended at once; what is committed is safe, the rest is written again by the next run, which"
    f" waits for the lease, {LEASE_LASTS // timedelta(minutes=1)} minutes at most"
)

_Result = TypeVar("_Result")

# Of the runs that were started here, or interrupted here: a later step of such a run ends at once.
_STOPS: dict[str, Stop] = {}


class _Work(Generic[_Result]):
    """This runs one function in a thread that holds up no process."""

    def __init__(self, do: Callable[[], _Result]) -> None:
        self._do = do
        self._results: list[_Result] = []
        self._error: BaseException | None = None
        # Not the thread's own end: a join() that an interrupt breaks off takes it for ended.
        self._over = threading.Event()
        context = copy_context()
        threading.Thread(target=context.run, args=(self._run,), daemon=True).start()

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def wait(self, seconds: float) -> None:
        self._over.wait(seconds)

    def result(self) -> _Result:
        """Returns what the function returned, or raises what it raised; it must be over."""
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._do())
        except BaseException as error:  # told to whoever waits, whatever it is
            self._error = error
        finally:
            self._over.set()


def require_going_on(context: AssetExecutionContext | OpExecutionContext) -> None:
    """Raises a Failure that no policy repeats, if the run is to end."""
    known = _STOPS.get(context.run.run_id)
    if (known is not None and known.is_asked) or _watched(context).is_to_end:
        raise Failure("the run was stopped, and what comes next was not begun", allow_retries=False)


def stoppable(
    context: AssetExecutionContext | OpExecutionContext, do: Callable[[Stop], _Result]
) -> _Result:
    """Does a step's work; an interrupt or Terminate makes it a failure that no policy repeats."""
    require_going_on(context)
    known = _STOPS.get(context.run.run_id)
    if known is not None or threading.current_thread() is not threading.main_thread():
        return do(known or Stop())
    stop = Stop()
    work = _Work(lambda: do(stop))
    watched = _watched(context)
    interrupt: BaseException | None = None
    try:
        while not (work.is_over or watched.is_to_end):
            work.wait(_LOOK_EVERY_S)
    except INTERRUPTS as error:
        interrupt = error
    if interrupt or not work.is_over:
        stop.ask()
        _STOPS[context.run.run_id] = stop
        try:
            work.wait(ENDS_WITHIN_S)
        except INTERRUPTS:
            if interrupt:
                raise
            work.wait(ENDS_WITHIN_S)  # Terminate sets the run's status, and then interrupts it
    if not work.is_over:
        raise Failure(
            f"stopped: the step did not end within {ENDS_WITHIN_S:g} s and was left behind;"
            " what it had not committed is done again by the next run",
            allow_retries=False,
        ) from interrupt
    return work.result()


def execute_stoppably(
    instance: DagsterInstance,
    run_id: str,
    execute: Callable[[], _Result],
    what_is_safe: Callable[[], str],
) -> _Result:
    """Executes a run in this process; raises Stopped if a signal or Terminate has ended it."""
    stop = _STOPS[run_id] = Stop()
    watched = watch(instance, run_id)
    signals: list[int] = []
    try:
        with _heard(signals):
            work = _Work(execute)
            while not (work.is_over or signals or watched.is_to_end):
                work.wait(_LOOK_EVERY_S)
            if not (signals or watched.is_to_end):
                return work.result()
            ends_at = time.monotonic() + ENDS_WITHIN_S
            _say("stopping; a second signal ends it at once")
            with doing("stopping"):
                # Before the work hears of it: only a run that is being cancelled is called
                # cancelled at its end, and not failed. A storage that is away must not keep the
                # run going.
                _Work(lambda: _report_canceling(instance, run_id)).wait(_ANSWERS_WITHIN_S)
                stop.ask()
                work.wait(ends_at - time.monotonic())
                left = None if work.is_over else _Work(lambda: _report_canceled(instance, run_id))
                safe = _Work(what_is_safe)
                safe.wait(_ANSWERS_WITHIN_S)
                if left:
                    left.wait(_LOOK_EVERY_S)
            raise Stopped(_said(safe), signals[0] if signals else signal.SIGTERM)
    finally:
        watched.end()
        del _STOPS[run_id]


def _say(line: str) -> None:
    with suppress(Exception):  # the terminal may be gone, or be written to at this moment
        print(line, file=sys.stderr, flush=True)


def _watched(context: AssetExecutionContext | OpExecutionContext) -> RunWatch:
    return watch(context.instance, context.run.run_id)


def _said(safe: "_Work[str]") -> str:
    with suppress(Exception):
        return safe.result() if safe.is_over else IN_SHORT
    return IN_SHORT


def told_as_stopped(
    ledger: Ledger, contract: TableContract, cells: Sequence[Cell], run_id: str, since: datetime
) -> str:
    """Says what is safe after a run was stopped, and what to type; `since` is the ledger's time."""
    table = ledger.find_route(contract.id)
    done = 0
    until: datetime | None = None
    if table is not None:
        starts = [cell.window.start for cell in cells]
        wanted = {cell_key(cell) for cell in cells}
        done = sum(
            record.commit is not None and record.commit.committed_at >= since
            for record in ledger.cells(table, min(starts), max(starts) + contract.window)
            if record.cell in wanted
        )
        until = max(
            (
                lease.expires_at
                for lease in ledger.leases(table)
                if lease.is_live and lease.owner == run_id and lease.expires_at
            ),
            default=None,
        )
    if done == len(cells):
        return (
            f"stopped: all {done:,} cells of {contract.id} are committed, and not all of them are"
            f" checked. Next: bqh verify {contract.id}"
        )
    wait = f", which has to wait until {until:%H:%M:%S} UTC for the lease" if until else ""
    return (
        f"stopped: {done:,} of {len(cells):,} cells of {contract.id} are committed; the others are"
        f" not, and are written again by the next run{wait}. Next: bqh sync {contract.id}"
    )


@contextmanager
def _heard(signals: list[int]) -> Iterator[None]:
    """Notes SIGINT and SIGTERM; the second of them ends this process at once."""

    def hear(signum: int, frame: FrameType | None) -> None:
        if signals:
            _say(ENDED_AT_ONCE)
            os._exit(128 + signum)
        signals.append(signum)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can hear signals
        return
    # What a script starts with & ignores Ctrl-C, which is meant for the script.
    heard = [each for each in HEARD if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, hear) for each in heard}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _report_canceling(instance: DagsterInstance, run_id: str) -> None:
    run = instance.get_run_by_id(run_id)
    if run is not None and not run.is_finished and run.status not in TO_END:
        instance.report_run_canceling(run, "Asked to stop by a signal.")


def _report_canceled(instance: DagsterInstance, run_id: str) -> None:
    run = instance.get_run_by_id(run_id)
    if run is not None and not run.is_finished:
        message = "It did not end in time and was left behind; what it had not committed is redone."
        instance.report_run_canceled(run, message)
