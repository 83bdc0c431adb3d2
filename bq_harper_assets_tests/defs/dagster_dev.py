"""Dagster as `bqh ui` starts it: webserver, daemon and code server, asked as the UI asks them."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from bq_harper_assets_tests.defs.shown import loadable

READY_WITHIN_S = 180.0


@dataclass(frozen=True)
class DagsterDev:
    """A running `dagster dev`."""

    url: str
    location: str
    pid: int

    def ask(self, query: str, **variables: Any) -> Any:
        """The one field that the query asks for."""
        answer = requests.post(
            f"{self.url}/graphql", json={"query": query, "variables": variables}, timeout=60
        )
        told = answer.json()
        assert "errors" not in told, told["errors"]
        [found] = told["data"].values()
        return found

    def selector(self, **named: str) -> dict[str, str]:
        """Of a schedule or a sensor of the project."""
        place = {"repositoryLocationName": self.location, "repositoryName": "__repository__"}
        return place | named

    def wait_for(self, ask: Callable[[], Any], within_s: float) -> Any:
        """The first answer that is not None."""
        give_up = time.monotonic() + within_s
        while time.monotonic() < give_up:
            if (found := ask()) is not None:
                return found
            time.sleep(1)
        raise AssertionError(f"nothing within {within_s} s")


@contextmanager
def dagster_dev(root: Path, home: Path, log: Path, first: str = "") -> Iterator[DagsterDev]:
    """Started for the project at `root` and ended with all that it has started itself."""
    definitions = loadable(root, first)
    workspace = {"load_from": [{"python_file": str(definitions)}]}
    (root / "workspace.yaml").write_text(json.dumps(workspace), encoding="utf-8")  # JSON is YAML
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    bqh = Path(sys.executable).with_name("bqh")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [bqh, "ui", "--port", str(port)],
            env=os.environ | {"BQH_HOME": str(root), "DAGSTER_HOME": str(home)},
            cwd=root,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        dev = DagsterDev(f"http://127.0.0.1:{port}", definitions.name, process.pid)
        dev.wait_for(lambda: _answers(process, dev.url, log), READY_WITHIN_S)
        yield dev
    finally:
        # To the whole group: its servers are children of their own.
        with suppress(ProcessLookupError):  # a test may have killed them all
            os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _answers(process: "subprocess.Popen[bytes]", url: str, log: Path) -> bool | None:
    assert process.poll() is None, log.read_text(encoding="utf-8", errors="replace")
    try:
        return requests.get(f"{url}/server_info", timeout=5).ok or None
    except requests.ConnectionError:
        return None
