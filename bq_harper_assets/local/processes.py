"""Processes that outlive the command that starts them, and are never mistaken for others.

The system uses a process id again; together with the time at which the kernel started the process
it is unique.
"""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

KILL_AFTER_SECONDS = 10.0
POLL_SECONDS = 0.05


class Process(BaseModel):
    """One process, for as long as the machine runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pid: int
    started: str  # as the kernel tells it


def start(command: Sequence[str], environ: Mapping[str, str], log: Path) -> Process:
    """In a session of its own, which Ctrl-C in the terminal does not reach; it writes to `log`."""
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    started = _started(child.pid) or "gone"
    # Its end is watched by is_running, here or in another process; Popen must not warn of it.
    child.returncode = 0
    return Process(pid=child.pid, started=started)


def is_running(process: Process) -> bool:
    """False for a process that has ended, and for another one with the same number."""
    _reap(process.pid)
    return _started(process.pid) == process.started


def stop(process: Process, kill_after: float = KILL_AFTER_SECONDS) -> bool:
    """Ask it to end, and make it end `kill_after` seconds later; False if it was not running."""
    if not is_running(process):
        return False
    _signal(process, signal.SIGTERM)
    if not _ended_within(process, kill_after):
        _signal(process, signal.SIGKILL)
        _ended_within(process, KILL_AFTER_SECONDS)
    return True


def _signal(process: Process, number: signal.Signals) -> None:
    # The session has the number of the process that began it, so its children get the signal too.
    if is_running(process):
        os.killpg(process.pid, number)


def _ended_within(process: Process, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while is_running(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _reap(pid: int) -> None:
    """An ended child stays in the process table until its parent asks for it."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # started by another command


def _started(pid: int) -> str | None:
    """When the kernel started it; None if it has ended."""
    if Path("/proc/self/stat").exists():
        return _started_by_proc(pid)
    return _started_by_ps(pid)


def _started_by_proc(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name, in brackets, may hold anything; behind it are the state and, in field 22, the start.
    fields = stat[stat.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else f"{boot} {fields[19]}"


def _started_by_ps(pid: int) -> str | None:
    done = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, began = done.stdout.strip().partition(" ")
    return None if not began or state.startswith("Z") else began.strip()
