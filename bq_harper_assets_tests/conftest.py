"""Real servers for the tests: each is started once per run, by the first test that asks for it."""

import fcntl
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.local.stack import LocalStack

PROJECT_ROOT = Path(__file__).resolve().parents[1]
# What a developer may have set for work, and what must not change a test.
SETTINGS = ("OPERATIONSAPI_", "GOOGLE_", "BIGQUERY_EMULATOR_", "BQH_", "BQEMU_")

# What a script starts with & ignores SIGINT, and Dagster then ignores SIGTERM too: what it starts
# would not end when it ends them, and each of its runs would wait 30 seconds for them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Java compiles once and lightly: most tests end before more of it pays, on two cores above all.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Small enough for a test to fill it.
SESSION_MIB = 256


def environ_without_settings() -> dict[str, str]:
    """The environment as a test sees it."""
    return {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(SETTINGS):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def project_root() -> Path:
    """The project whose .local/software holds Harper."""
    return PROJECT_ROOT


@pytest.fixture(scope="session")
def stack_folder() -> Iterator[Path]:
    """Wiped at the start of a run; a run beside it gets a folder of its own."""
    folder = local_folder(PROJECT_ROOT)
    folder.mkdir(exist_ok=True)
    for number in range(1, 100):
        place = folder / ("test-stack" if number == 1 else f"test-stack-{number}")
        with place.with_suffix(".lock").open("w", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield place
            return
    raise AssertionError("a hundred test runs at once")


@pytest.fixture(scope="session")
def local_stack(stack_folder: Path) -> Iterator[LocalStack]:
    """Not started; its ports are not the preferred ones, on which a stack for work may run."""
    stack = LocalStack(
        PROJECT_ROOT,
        stack_folder,
        preferred={},
        persistent=False,
        environ={**environ_without_settings(), "BQH_EMULATOR_SESSION_MIB": str(SESSION_MIB)},
    )
    stack.purge(print)  # stops what a run that was killed has left behind
    yield stack
    stack.down(print)


@pytest.fixture(scope="session")
def harper_server(local_stack: LocalStack) -> StackAddresses:
    """Harper is running; BigQuery perhaps not."""
    return local_stack.up(print, servers=["harper"])


@pytest.fixture(scope="session")
def bigquery_server(local_stack: LocalStack) -> StackAddresses:
    """BigQuery is running; Harper perhaps not."""
    return local_stack.up(print, servers=["bigquery"])


@pytest.fixture(scope="session")
def stack(local_stack: LocalStack) -> StackAddresses:
    """Both servers are running."""
    return local_stack.up(print)


@pytest.fixture(scope="session")
def bigquery_connection(bigquery_server: StackAddresses) -> BigQueryConnection:
    """How to reach the emulator."""
    return BigQueryConnection(
        project=bigquery_server.bigquery_project,
        endpoint=bigquery_server.bigquery_url,
        storage_endpoint=bigquery_server.bigquery_storage,
    )


@pytest.fixture(scope="session")
def harper_connection(harper_server: StackAddresses) -> HarperConnection:
    """How to reach Harper."""
    return HarperConnection(
        url=harper_server.harper_url,
        user=harper_server.harper_user,
        password=SecretStr(harper_server.harper_password_file.read_text(encoding="ascii")),
    )


@pytest.fixture
def nowhere() -> str:
    """An address on loopback at which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"
