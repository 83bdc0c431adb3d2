"""A dead server is told in one line before anything else is done; runs under way are patient."""

import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bq_harper_assets.cli.runs.reachability import NotLoggedIn, NotReachable, require_servers
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets_tests.cli.typed import typed
from bq_harper_assets_tests.empty_dagster import empty_dagster
from bq_harper_assets_tests.fault_proxy import FaultProxy, Stall
from bq_harper_assets_tests.temporary_project import TemporaryProject

ORDERS = {
    "id": "orders",
    "dataset": "shop",
    "table": "orders",
    "timestampColumn": "ts",
    "targetTable": "Orders",
    "sync": {"startTimestamp": "2026-01-05"},
}
TYPED = [
    "sync orders",
    "verify orders",
    "repair orders --deep",
    "reconcile orders",
    "read orders",
    "adopt orders",
    "schema show orders",
    "schema indexes orders",
    "maritime stats",
]


@pytest.fixture
def dead(
    tmp_path: Path, project_root: Path, nowhere: str, monkeypatch: pytest.MonkeyPatch
) -> Project:
    """A project whose servers have been killed: their addresses are known and nothing listens."""
    monkeypatch.setenv("BQH_HOME", str(tmp_path / "project"))
    monkeypatch.setenv("DAGSTER_HOME", empty_dagster(tmp_path / "dagster"))
    password = tmp_path / "password"
    password.write_text("secret", encoding="ascii")
    addresses = StackAddresses(
        harper_url=nowhere,
        harper_rest_url=nowhere,
        harper_user="admin",
        harper_password_file=password,
        bigquery_url=nowhere,
        bigquery_storage=nowhere.removeprefix("http://"),
        bigquery_project="local",
    )
    return TemporaryProject.at(tmp_path / "project", project_root, addresses).declare(ORDERS)


@pytest.mark.parametrize("command", TYPED)
def test_a_dead_server_is_told_in_one_line_before_the_first_effect(
    dead: Project, nowhere: str, command: str
) -> None:
    ended = typed(*command.split())
    assert isinstance(ended.exception, NotReachable)
    text = str(ended.exception)
    assert "\n" not in text
    assert f"does not answer at {nowhere}" in text
    assert text.endswith(": bqh up")
    assert ended.exception.exit_code == 1
    assert ended.output == ""


def test_both_servers_are_named_and_other_profiles_are_sent_to_the_doctor(
    dead: Project, nowhere: str
) -> None:
    with pytest.raises(NotReachable) as told:
        require_servers(dead)
    assert str(told.value) == (
        f"Harper does not answer at {nowhere} and BigQuery does not answer at {nowhere}: bqh up"
    )
    with pytest.raises(NotReachable, match=r"^BigQuery does not answer at \S+: bqh up$"):
        require_servers(dead, harper=False)


def test_names_that_nobody_looks_up_and_hosts_that_say_nothing_are_told_within_5_s(
    dead: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()

    def hang(*asked: object, **named: object) -> Any:
        over.wait(60)
        raise OSError("timed out")

    monkeypatch.setattr(socket, "create_connection", hang)
    began = time.monotonic()
    with pytest.raises(NotReachable, match=r"^Harper does .* and BigQuery does not answer"):
        require_servers(dead)
    assert time.monotonic() - began < 5
    over.set()


def test_googles_own_servers_are_tried_too_through_a_proxy_if_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[tuple[str, int]] = []

    def away(address: tuple[str, int], timeout: float) -> Any:
        tried.append(address)
        raise OSError("no route to host")

    for name in ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(socket, "create_connection", away)
    google: Any = SimpleNamespace(profile_name="gcp", bigquery=SimpleNamespace(endpoint=None))
    with pytest.raises(NotReachable, match=r"BigQuery does not answer at https://bigquery\.goo"):
        require_servers(google, harper=False)
    monkeypatch.setenv("https_proxy", "http://proxy.example.com:3128")
    with pytest.raises(NotReachable, match=r"googleapis\.com through proxy\.example\.com:3128: "):
        require_servers(google, harper=False)
    assert tried == [("bigquery.googleapis.com", 443), ("proxy.example.com", 3128)]


@pytest.mark.harper
@pytest.mark.bigquery
def test_servers_that_listen_are_not_complained_about(project: TemporaryProject) -> None:
    require_servers(project.declare(ORDERS))


@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.promise("A13")
def test_a_wrong_password_and_a_url_that_is_no_operations_api_are_told_before_a_run_is_made(
    project: TemporaryProject, stack: StackAddresses, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.declare(ORDERS)
    for name, value, said, then in (
        ("OPERATIONSAPI_PASS", "wrong", "the password of user 'admin' at ", "set OPERATIONSAPI_US"),
        ("OPERATIONSAPI_URL", stack.harper_rest_url, "not its Operations API", "its port is 9925"),
        ("OPERATIONSAPI_URL", stack.bigquery_url, "it is not a Harper", "set OPERATIONSAPI_URL"),
    ):
        with monkeypatch.context() as environ:
            environ.setenv("OPERATIONSAPI_PASS", "nobody reads it here")
            environ.setenv(name, value)
            for command in ("sync orders", "verify orders", "read orders"):
                began = time.monotonic()
                ended = typed(*command.split())
                assert time.monotonic() - began < 5
                assert isinstance(ended.exception, NotLoggedIn), ended.exception
                assert (ended.exception.exit_code, ended.output) == (2, "")
                text = str(ended.exception)
                assert said in text
                assert "Nothing was started. Next: " in text
                assert then in text


@pytest.mark.harper
@pytest.mark.bigquery
def test_a_harper_that_says_nothing_keeps_nobody_from_beginning(
    project: TemporaryProject, proxy: FaultProxy
) -> None:
    proxy.on(Stall(), operation="user_info")
    declared = project.declare(ORDERS)
    began = time.monotonic()
    require_servers(declared)
    assert time.monotonic() - began < 5
    assert proxy.seen(operation="user_info")
