"""Starts processes that outlive their command, and never mistakes another process for one of them.

The system uses a process id again; together with the time at which the kernel started the process
it is unique.
"""

import hashlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

KILL_AFTER_SECONDS = 10.0
POLL_SECONDS = 0.05
# Every Linux machine has this one; a container has another one, with process ids of its own.
FIRST_NAMESPACE = "pid:[4026531836]"
MACHINE_ID = Path("/etc/machine-id")
NO_MACHINE_ID = "none"
_SHOWN_OF_MACHINE = 12


class Process(BaseModel):
    """A process is known by its id and its start, for as long as the machine runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pid: int
    started: str  # in the kernel's own form


class Listed(BaseModel):
    """A listed process is any process of this machine, whoever started it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pid: int
    parent: int
    command: str  # with its arguments


def start(command: Sequence[str], environ: Mapping[str, str], log: Path) -> Process:
    """Starts a process in its own session, which the terminal's Ctrl-C does not reach.

    It writes to `log`.
    """
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
    # is_running watches for its end, here or in another process, so Popen must not warn of it.
    child.returncode = 0
    return Process(pid=child.pid, started=started)


def find_process(pid: int) -> Process | None:
    """Returns the process that has this number now; None if there is none, or if it has ended."""
    started = _started(pid)
    return Process(pid=pid, started=started) if started else None


def listed() -> Iterator[Listed]:
    """Yields all processes of this machine that are visible to us."""
    if not Path("/proc/self/stat").exists():
        yield from _listed_by_ps()
        return
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
            fields = _fields((place / "stat").read_text(encoding="utf-8", errors="replace"))
        except OSError:  # the process has ended meanwhile
            continue
        command = b" ".join(words).decode("utf-8", "replace")
        yield Listed(pid=int(place.name), parent=int(fields[1]), command=command.strip())


def here() -> str:
    """Names the scope of a process id: this host's name, and in a container its namespace too."""
    host = socket.gethostname()
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:  # this is not Linux, so there are no such containers
        return host
    return host if namespace == FIRST_NAMESPACE else f"{host} {namespace}"


def machine() -> str:
    """Returns a text that differs between two hosts of one name, if the system has a machine id."""
    try:
        own = MACHINE_ID.read_text(encoding="utf-8").strip()
    except OSError:
        own = ""
    if not own:  # most containers have none
        return NO_MACHINE_ID
    # The manual of machine-id asks programs not to publish the id itself.
    return hashlib.sha256(f"bqh {own}".encode()).hexdigest()[:_SHOWN_OF_MACHINE]


def start_time(pid: int) -> float | None:
    """Returns when the process began, in seconds since 1970; None if there is none."""
    started = _started(pid)
    if started is None:
        return None
    if not Path("/proc/self/stat").exists():
        return datetime.strptime(started, "%a %b %d %H:%M:%S %Y").astimezone().timestamp()
    since_boot = int(started.split()[-1]) / os.sysconf("SC_CLK_TCK")
    boot = Path("/proc/stat").read_text(encoding="ascii").partition("btime ")[2]
    return int(boot.split(maxsplit=1)[0]) + since_boot


def is_running(process: Process) -> bool:
    """Says whether it still runs; it does not if another process has its number now."""
    _reap(process.pid)
    return _started(process.pid) == process.started


def stop(process: Process, kill_after: float = KILL_AFTER_SECONDS) -> bool:
    """Asks a process to end, and kills it after `kill_after` seconds; False if it did not run."""
    # The session has the number of the process that began it, so its children get the signal too.
    return _stop(process, os.killpg, kill_after)


def stop_alone(process: Process) -> bool:
    """Stops a process that began no session: only the process itself gets the signal."""
    return _stop(process, os.kill, KILL_AFTER_SECONDS)


def _stop(process: Process, send: Callable[[int, int], None], kill_after: float) -> bool:
    if not is_running(process):
        return False
    send(process.pid, signal.SIGTERM)
    if not _ended_within(process, kill_after) and is_running(process):
        send(process.pid, signal.SIGKILL)
        _ended_within(process, KILL_AFTER_SECONDS)
    return True


def _ended_within(process: Process, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while is_running(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _reap(pid: int) -> None:
    """Removes an ended child, which stays in the process table until its parent asks for it."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # another command started it


def _started(pid: int) -> str | None:
    """Returns when the kernel started it; None if it has ended."""
    if Path("/proc/self/stat").exists():
        return _started_by_proc(pid)
    return _started_by_ps(pid)


def _started_by_proc(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = _fields(stat)
    return None if fields[0] in "ZX" else f"{boot} {fields[19]}"


def _fields(stat: str) -> list[str]:
    """Returns the fields from the third on: the state, the parent, and in field 22 the start."""
    # The name before them, in brackets, may contain anything.
    return stat[stat.rindex(")") + 2 :].split()


def _started_by_ps(pid: int) -> str | None:
    done = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},  # the date is parsed later
    )
    state, _, began = done.stdout.strip().partition(" ")
    return None if not began or state.startswith("Z") else began.strip()


def _listed_by_ps() -> Iterator[Listed]:
    done = subprocess.run(
        ["ps", "-axww", "-o", "pid=,ppid=,command="], capture_output=True, text=True, check=False
    )
    for line in done.stdout.splitlines():
        pid, parent, command = line.split(maxsplit=2)
        yield Listed(pid=int(pid), parent=int(parent), command=command)
