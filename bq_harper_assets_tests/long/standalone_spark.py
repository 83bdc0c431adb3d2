"""A real Spark cluster on loopback, from the jars that PySpark brings: a master and two workers.

Each worker has a host of its own, 127.0.0.1 and 127.0.0.2: Spark runs no second copy of a task on
the host of the first.
"""

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyspark
import requests

from bq_harper_assets.local.java import java_home

HOSTS = ("127.0.0.1", "127.0.0.2")
READY_WITHIN_S = 120.0
ENDS_WITHIN_S = 20.0
_DEPLOY = "org.apache.spark.deploy"
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_PAGES = re.compile(r"MasterWebUI to 127\.0\.0\.1, and started at (http://\S+)")
# What a driver of this process may have set, and what would reach the executors.
_OF_DRIVERS = ("SPARK_", "PYSPARK_")


@dataclass(frozen=True)
class StandaloneSpark:
    """A running cluster with one core per worker."""

    master: str
    pages: str
    workers: tuple[psutil.Process, ...]

    def state(self) -> dict[str, Any]:
        """What the master says of its workers and applications."""
        answer = requests.get(f"{self.pages}/json/", timeout=10)
        answer.raise_for_status()
        told: dict[str, Any] = answer.json()
        return told

    def executors(self) -> list[psutil.Process]:
        """The processes that the workers have started: executors, and their Python processes."""
        return [each for worker in self.workers for each in worker.children(recursive=True)]


@contextmanager
def standalone_spark(root: Path, folder: Path) -> Iterator[StandaloneSpark]:
    """Ready when the block begins, and ended with all that it has started; `root` is our code."""
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(_OF_DRIVERS)
    }
    # As on the machines of a cluster, where somebody has installed the package.
    environ |= {"JAVA_HOME": str(java_home(root, os.environ)), "PYTHONPATH": str(root)}
    # The server for submitting applications would take a port that is always the same.
    environ |= {"SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false"}
    environ |= {"SPARK_DAEMON_MEMORY": "256m"}
    with ExitStack() as started:
        log = folder / "master.log"
        options = ("--host", HOSTS[0], "--port", "0", "--webui-port", "0")
        started.enter_context(_daemon("master.Master", *options, host=HOSTS[0], log=log, **environ))
        found = _soon(lambda: _told(log), f"no master, see {log}")
        master, pages = found
        workers = []
        for host in HOSTS:
            place = folder / host
            options = ("--host", host, "--port", "0", "--webui-port", "0", "--cores", "1")
            options += ("--memory", "1g", "--work-dir", str(place), master)
            log = folder / f"{host}.log"
            workers.append(
                started.enter_context(
                    _daemon("worker.Worker", *options, host=host, log=log, **environ)
                )
            )
        spark = StandaloneSpark(master, pages, tuple(workers))
        _soon(lambda: spark.state()["aliveworkers"] == len(HOSTS), f"no workers, see {folder}")
        yield spark


@contextmanager
def _daemon(
    name: str, *options: str, host: str, log: Path, **environ: str
) -> Iterator[psutil.Process]:
    """Ended with its executors, which outlive a worker that is killed."""
    command = [str(Path(pyspark.__path__[0]) / "bin" / "spark-class"), f"{_DEPLOY}.{name}"]
    with log.open("wb") as output:
        started = subprocess.Popen(
            [*command, *options],
            env=environ | {"SPARK_LOCAL_IP": host},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    process = psutil.Process(started.pid)
    try:
        yield process
    finally:
        below = process.children(recursive=True) if process.is_running() else []
        started.terminate()
        try:
            started.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
        _, left = psutil.wait_procs(below, timeout=ENDS_WITHIN_S)
        for each in left:
            each.kill()


def _told(log: Path) -> tuple[str, str] | None:
    """The master's own address and that of its pages, from what it says when it starts."""
    said = log.read_text(encoding="utf-8")
    master, pages = _MASTER.search(said), _PAGES.search(said)
    return (master[1], pages[1]) if master and pages else None


def _soon(ask: Callable[[], Any], otherwise: str) -> Any:
    give_up = time.monotonic() + READY_WITHIN_S
    while not (found := ask()):
        assert time.monotonic() < give_up, otherwise
        time.sleep(0.1)
    return found
