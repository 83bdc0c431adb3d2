"""A deployment's sensor in a process of its own, that can be killed: `python -m ... ROOT`.

Each line that it reads is a cursor; each line that it writes is how the tick ended.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.contract.project import load_project
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets_tests.defs.conftest import Dagster
from bq_harper_assets_tests.defs.drifting import Drifting, LedgerClock


class OtherDeployment:
    """The process as a test holds it."""

    def __init__(self, root: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def wait(self) -> None:
        """Until it can tick."""
        assert self._line() == "ready\n"

    def begin(self, cursor: dict[str, Any]) -> None:
        """A tick; returns at once."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(cursor) + "\n")

    def tick(self, cursor: dict[str, Any]) -> dict[str, Any]:
        """As it ends."""
        self.begin(cursor)
        told: dict[str, Any] = json.loads(self._line())
        return told

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()


@contextmanager
def other_deployment(root: Path) -> Iterator[OtherDeployment]:
    """One that can tick; killed at the end of the block."""
    started = OtherDeployment(root)
    try:
        started.wait()
        yield started
    finally:
        started.kill()


def main(root: Path) -> None:
    """Until the input ends."""
    with ExitStack() as stack:
        instance = stack.enter_context(project_instance(root))
        harper = stack.enter_context(HarperClient(load_project(root).harper))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        sensor = Drifting(dagster=Dagster(root, instance, harper), clock=LedgerClock(patch))
        print("ready", flush=True)
        for line in sys.stdin:
            sensor.cursor = json.loads(line)
            sensor.tick()
            print(json.dumps({"said": sensor.said, "cursor": sensor.cursor}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
