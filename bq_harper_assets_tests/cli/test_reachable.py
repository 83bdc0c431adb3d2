"""A dead server is told in one line before anything else is done; runs under way are patient."""

import time
from pathlib import Path

import pytest

from bq_harper_assets.cli.reachable import NotReachable, require_servers
from bq_harper_assets.contract.addresses import StackAddresses
from bq_harper_assets.contract.project import Project
from bq_harper_assets_tests.cli.typed import typed
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
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
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
    began = time.monotonic()
    ended = typed(*command.split())
    assert isinstance(ended.exception, NotReachable)
    text = str(ended.exception)
    assert "\n" not in text
    assert f"does not answer at {nowhere}" in text
    assert text.endswith(": bqh up")
    assert ended.exception.exit_code == 1
    assert ended.output == ""
    assert time.monotonic() - began < 60  # it was 400 s; imports alone take seconds here


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


@pytest.mark.harper
@pytest.mark.bigquery
def test_servers_that_listen_are_not_complained_about(project: TemporaryProject) -> None:
    require_servers(project.declare(ORDERS))
