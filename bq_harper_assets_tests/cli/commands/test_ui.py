"""`bqh ui` where a Dagster was killed, or where its port is taken; where all is well: defs/test_ui.

The processes are stand-ins with the command lines of Dagster's servers: only these are looked at.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from bq_harper_assets.cli.commands.ui import UI_LOCK, servers_of
from bq_harper_assets.cli.exit_codes import ExitCode
from bq_harper_assets.local import processes
from bq_harper_assets.local.dagster_home import make_dagster_home
from bq_harper_assets.local.locks import hold
from bq_harper_assets_tests.cli.typed import typed
from bq_harper_assets_tests.temporary_project import TemporaryProject

SLEEP = "import time; print('ready', flush=True); time.sleep(600)"
HOLD_AND_BECOME = """
import os, sys
from pathlib import Path
from bq_harper_assets.local.locks import hold
assert hold(Path(sys.argv[1]), "the first") is None
os.execv("/bin/sh", ["/bin/sh", "-c", "echo ready; exec sleep 600"])
"""


@pytest.fixture
def home(tmp_path: Path, project_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of the Dagster of a project of its own."""
    project = TemporaryProject.at(tmp_path / "project", project_root, None)
    monkeypatch.setenv("BQH_HOME", str(project.root))
    monkeypatch.setenv("DAGSTER_HOME", "")
    return make_dagster_home(project.root, os.environ)


@pytest.fixture
def started() -> Iterator[ExitStack]:
    """Ends what a test has started."""
    with ExitStack() as stack:
        yield stack


def begin(started: ExitStack, *command: str) -> "subprocess.Popen[str]":
    """At work once it returns."""
    process = started.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    started.callback(process.kill)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.fixture
def taken_port(started: ExitStack) -> int:
    listening = started.enter_context(closing(socket.socket()))
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    return int(listening.getsockname()[1])


def test_a_web_server_whose_starter_was_killed_is_ended(
    home: Path, started: ExitStack, taken_port: int
) -> None:
    told = ("-m", "dagster_webserver", "--host", "127.0.0.1", "--port", "3000", "--instance-ref")
    ours = begin(started, sys.executable, "-c", SLEEP, *told, f"base_dir: {home}\\n")
    others = begin(started, sys.executable, "-c", SLEEP, *told, "base_dir: /another/home\\n")
    assert [each.pid for each in servers_of(home)] == [ours.pid]
    ended = typed("ui", "--port", str(taken_port))
    assert f"ending process {ours.pid} of a Dagster whose starter was killed" in ended.stdout
    assert processes.find_process(ours.pid) is None
    assert others.poll() is None
    assert ended.exit_code == ExitCode.USAGE
    assert f"port {taken_port} is taken by another program. Nothing was started" in ended.stderr


def test_a_dagster_that_has_just_begun_is_noticed_too(home: Path, started: ExitStack) -> None:
    lock = home / UI_LOCK
    begin(started, sys.executable, "-c", HOLD_AND_BECOME, str(lock))
    lock.write_text("", encoding="utf-8")  # it has the lock, and has noted nothing yet
    ended = typed("ui")
    assert ended.exit_code == 0
    assert ended.stdout == (
        f"Dagster runs already for {home}: it starts now. Nothing was started. To start it anew,"
        " end it first: Ctrl-C in its terminal\n"
    )


def test_the_lock_outlives_the_command_that_became_another_program(
    tmp_path: Path, started: ExitStack
) -> None:
    lock = tmp_path / "ui.lock"
    first = begin(started, sys.executable, "-c", HOLD_AND_BECOME, str(lock))
    assert hold(lock, "the second") == "the first"
    first.kill()
    first.wait()
    assert hold(lock, "the second") is None
    assert lock.read_text(encoding="utf-8") == "the second"
