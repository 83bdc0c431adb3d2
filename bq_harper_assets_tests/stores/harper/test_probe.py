"""What `bqh doctor` says of a Harper: each way to be out of reach has a text of its own."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
from pydantic import SecretStr

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.stores.finding import Finding
from bq_harper_assets.stores.harper.probe import lasting_refusal, probe_harper
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy, Stall


def _connection(known: HarperConnection, **changes: Any) -> HarperConnection:
    return known.model_copy(update=changes)


@pytest.mark.harper
def test_the_admin_of_the_local_stack_works_and_is_called_too_mighty(
    harper_connection: HarperConnection,
) -> None:
    found = probe_harper(harper_connection)
    assert [(f.subject, f.verdict) for f in found] == [
        ("harper: reach", "ok"),
        ("harper: log in", "ok"),
        ("harper: rights", "warn"),
    ]


@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.promise("A13")
def test_four_ways_to_miss_harper_have_four_texts(
    harper_connection: HarperConnection, stack: StackAddresses, nowhere: str
) -> None:
    addresses = {"down": nowhere, "rest": stack.harper_rest_url, "other": stack.bigquery_url}
    found = {
        why: probe_harper(_connection(harper_connection, url=url)) for why, url in addresses.items()
    }
    found["password"] = probe_harper(_connection(harper_connection, password=SecretStr("wrong")))[
        1:
    ]
    assert all([f.verdict for f in fs] == ["fail"] for fs in found.values())
    texts = {why: fs[0].detail for why, fs in found.items()}
    assert texts == {
        "down": f"nothing answers at {nowhere} (ConnectionError)",
        "rest": f"{stack.harper_rest_url} is a Harper, but not its Operations API "
        "(the REST port, perhaps)",
        "other": f"{stack.bigquery_url} answers, but it is not a Harper (status 404)",
        "password": f"the password of user 'admin' at {stack.harper_url} is wrong, "
        "or there is no such user",
    }
    assert all(fs[0].next_step for fs in found.values())
    # A run that is to begin is told the same, but for a server that may come back.
    bad = {why: _connection(harper_connection, url=url) for why, url in addresses.items()}
    bad["password"] = _connection(harper_connection, password=SecretStr("wrong"))
    lasting = {why: lasting_refusal(each, 4.0) for why, each in bad.items()}
    assert lasting == {why: None if why == "down" else fs[0] for why, fs in found.items()}
    assert lasting_refusal(harper_connection, 4.0) is None


@pytest.mark.harper
def test_a_harper_that_is_busy_or_silent_may_answer_later(
    harper_connection: HarperConnection,
) -> None:
    for fault in (Answer(503, {"error": "busy"}), Answer(429), Stall()):
        with FaultProxy(harper_connection.url) as proxy:
            proxy.on(fault, times=2)
            assert lasting_refusal(_connection(harper_connection, url=proxy.url), 0.5) is None
            assert proxy.seen()[0].fault == fault


@pytest.mark.harper
def test_a_token_logs_in_and_one_that_has_run_out_is_told_as_such(
    harper_connection: HarperConnection,
) -> None:
    asked = {"operation": "create_authentication_tokens", "username": harper_connection.user}
    secret = harper_connection.password.get_secret_value()
    made = requests.post(harper_connection.url, json={**asked, "password": secret}, timeout=30)
    token = SecretStr(made.json()["operation_token"])
    good = _connection(harper_connection, token=token, password=SecretStr(""))
    assert [found.verdict for found in probe_harper(good)][:2] == ["ok", "ok"]
    spoilt = _connection(good, token=SecretStr(token.get_secret_value()[:-4]))
    assert probe_harper(spoilt)[-1].detail == (
        f"the token for {harper_connection.url} is wrong or has run out"
    )


@pytest.fixture
def operations(harper_connection: HarperConnection) -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.auth = (harper_connection.user, harper_connection.password.get_secret_value())
        # A role can only name a database that is there; 400 says that it is.
        request = {"operation": "create_database", "database": "data"}
        session.post(harper_connection.url, json=request, timeout=30)
        yield session


def _rights_of(
    operations: requests.Session, known: HarperConnection, user: str, permission: dict[str, Any]
) -> Finding:
    for request in (
        {"operation": "add_role", "role": user, "permission": permission},
        {"operation": "add_user", "role": user, "username": user, "password": "pw", "active": True},
    ):
        operations.post(known.url, json=request, timeout=30).raise_for_status()
    return probe_harper(_connection(known, user=user, password=SecretStr("pw")))[-1]


@pytest.mark.harper
def test_a_role_is_judged_by_whether_it_may_create_tables(
    harper_connection: HarperConnection, operations: requests.Session
) -> None:
    builder = {"super_user": False, "structure_user": ["data"]}
    enough = _rights_of(operations, harper_connection, "probe_builder", builder)
    assert (enough.verdict, enough.next_step) == ("ok", "")
    too_little = _rights_of(operations, harper_connection, "probe_reader", {"super_user": False})
    assert too_little.verdict == "fail"
    assert too_little.next_step.startswith('give its role "structure_user": ["data"]')
