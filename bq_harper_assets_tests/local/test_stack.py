"""A stack that is not as it should be: half-started, stale, in the way, broken."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bq_harper_assets.local.errors import StackError
from bq_harper_assets.local.folder import StackFolder, StackState
from bq_harper_assets.local.ports import PREFERRED, Ports
from bq_harper_assets.local.processes import Process, is_running, start, stop
from bq_harper_assets.local.stack import LocalStack
from bq_harper_assets_tests.conftest import environ_without_settings

NOWHERE = Ports(harper=1, harper_rest=1, bigquery=1, bigquery_storage=1)


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Process]:
    """A process that is no server."""
    process = start(["sleep", "60"], os.environ, tmp_path / "sleeper.log")
    yield process
    stop(process)


def remembered(folder: Path, **processes: Process) -> StackFolder:
    """The folder of a stack that was started once."""
    stack_folder = StackFolder(folder)
    stack_folder.make()
    stack_folder.write_state(StackState(ports=NOWHERE, processes=processes))
    return stack_folder


def test_a_file_in_the_way_is_named_with_what_to_type(project_root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StackError) as caught:
        LocalStack(project_root, tmp_path / "file" / "stack").up(print)
    assert str(caught.value) == (
        f"the local stack cannot keep its files in {tmp_path}/file/stack: [Errno 20] Not a "
        f"directory: '{tmp_path}/file/stack'. Nothing was started. Next: make that place writable, "
        "or type: bqh up --folder ANOTHER_FOLDER"
    )


def test_a_stack_that_never_ran_is_stopped_and_leaves_no_trace(
    project_root: Path, tmp_path: Path
) -> None:
    stack = LocalStack(project_root, tmp_path / "stack")
    assert [server.state for server in stack.status().servers] == ["stopped", "stopped"]
    stack.down(print)
    assert not (tmp_path / "stack").exists()


def test_a_process_with_a_remembered_number_is_not_ours_to_stop(
    project_root: Path, tmp_path: Path, sleeper: Process
) -> None:
    reused = Process(pid=sleeper.pid, started="before the last start of this machine")
    folder = remembered(tmp_path / "stack", harper=reused)
    stack = LocalStack(project_root, folder.path)
    assert [server.state for server in stack.status().servers] == ["died", "stopped"]
    said: list[str] = []
    stack.down(said.append)
    assert said == ["the local stack is not running"]
    assert is_running(sleeper)


@pytest.mark.harper
@pytest.mark.bigquery
def test_ctrl_c_stops_what_was_started(project_root: Path, tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("bqh")), "up", "--folder", str(tmp_path)]
    # Tests of another process may start or expect servers on the preferred ports.
    for name, port in zip(PREFERRED, _free_ports(len(PREFERRED)), strict=True):
        command += [f"--{name.replace('_', '-')}-port", str(port)]
    environ = {**environ_without_settings(), "BQH_HOME": str(project_root)}
    folder = StackFolder(tmp_path)
    started: dict[str, Process] = {}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE) as bqh:
        deadline = time.monotonic() + 180  # another process's stack may start first
        while len(started) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
            started = folder.read_state().processes
        bqh.send_signal(signal.SIGINT)
    assert bqh.returncode == 130
    assert len(started) == 2
    assert not any(is_running(process) for process in started.values())
    assert folder.read_state().processes == {}
    assert not (tmp_path / "addresses.json").exists()


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
