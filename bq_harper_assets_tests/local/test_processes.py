"""Servers are started apart from the terminal, and nothing else is ever stopped."""

import os
import sys
import time
from pathlib import Path

import pytest

from bq_harper_assets.local import processes
from bq_harper_assets.local.processes import (
    NO_MACHINE_ID,
    Process,
    is_running,
    machine,
    start,
    start_time,
    stop,
)

SLEEP = ["sleep", "60"]
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(60)
"""


def wait_for(log: Path, words: str) -> None:
    deadline = time.monotonic() + 20
    while not log.exists() or words not in log.read_text(encoding="utf-8"):
        assert time.monotonic() < deadline, f"{words!r} never came"
        time.sleep(0.02)


def test_a_process_runs_in_its_own_session_and_writes_to_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = "import os, sys; print(os.getsid(0)); print('oops', file=sys.stderr); sys.stdin.read()"
    process = start([sys.executable, "-c", script], os.environ, log)
    wait_for(log, "oops")
    assert f"{process.pid}\n" in log.read_text(encoding="utf-8")


def test_stop_ends_a_running_process_and_says_so_once(tmp_path: Path) -> None:
    process = start(SLEEP, os.environ, tmp_path / "log")
    assert is_running(process)
    assert stop(process)
    assert not is_running(process)
    assert not stop(process)
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)  # not even a zombie is left


def test_a_process_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    process = start([sys.executable, "-c", STUBBORN], os.environ, tmp_path / "log")
    wait_for(tmp_path / "log", "deaf")
    began = time.monotonic()
    assert stop(process, kill_after=0.5)
    assert 0.5 <= time.monotonic() - began < 5
    assert not is_running(process)


def test_its_children_are_stopped_with_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = start(["sh", "-c", "sleep 60 & echo child $!; wait"], os.environ, log)
    wait_for(log, "child")
    child = int(log.read_text(encoding="utf-8").split()[1])
    stop(process)
    with pytest.raises(ProcessLookupError):
        _wait_until_gone(child)


def _wait_until_gone(pid: int) -> None:
    for _ in range(100):
        os.kill(pid, 0)
        if "Z" in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").split()[2]:
            raise ProcessLookupError
        time.sleep(0.05)


def test_another_process_with_the_same_number_is_left_alone(tmp_path: Path) -> None:
    process = start(SLEEP, os.environ, tmp_path / "log")
    older = Process(pid=process.pid, started="some time before")
    assert not is_running(older)
    assert not stop(older)
    assert is_running(process)
    stop(process)


def test_a_process_that_has_ended_is_not_running(tmp_path: Path) -> None:
    process = start(["true"], os.environ, tmp_path / "log")
    deadline = time.monotonic() + 20
    while is_running(process):
        assert time.monotonic() < deadline
    assert not stop(process)


def test_a_process_is_known_by_when_it_began(tmp_path: Path) -> None:
    process = start(SLEEP, os.environ, tmp_path / "log")
    began = start_time(process.pid)
    assert began is not None
    assert abs(time.time() - began) < 3
    stop(process)
    assert start_time(process.pid) is None


def test_two_machines_are_told_apart_and_neither_shows_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "machine-id"
    monkeypatch.setattr(processes, "MACHINE_ID", file)
    assert machine() == NO_MACHINE_ID
    file.touch()
    assert machine() == NO_MACHINE_ID
    told = []
    for own in ("3d1219c7c4c5404aaa1f6d2a48adfda4", "4d1219c7c4c5404aaa1f6d2a48adfda4"):
        file.write_text(f"{own}\n", encoding="ascii")
        told.append(machine())
        assert machine() not in own
    assert told[0] != told[1]
