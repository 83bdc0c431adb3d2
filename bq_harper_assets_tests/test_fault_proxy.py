"""The proxy that other tests trust, in front of a real Harper."""

import threading
import time
from collections.abc import Iterator

import pytest
import requests

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets_tests.fault_proxy import (
    Answer,
    CutAnswer,
    Delay,
    Fault,
    FaultProxy,
    LateAnswer,
    NoAnswer,
    Reset,
    Stall,
)

pytestmark = pytest.mark.harper
TABLE = "ProxyRows"


@pytest.fixture(scope="module")
def _table(harper_connection: HarperConnection) -> None:
    attributes = [{"name": "id", "type": "String"}]
    ask(harper_connection, "create_table", primary_key="id", attributes=attributes)


@pytest.fixture
def proxy(harper_connection: HarperConnection, _table: None) -> Iterator[FaultProxy]:
    with FaultProxy(harper_connection.url) as proxy:
        yield proxy


def ask(
    connection: HarperConnection, operation: str, url: str | None = None, **fields: object
) -> requests.Response:
    return requests.post(
        url or connection.url,
        json={"operation": operation, "database": "data", "table": TABLE, **fields},
        auth=(connection.user, connection.password.get_secret_value()),
        timeout=(1, 0.5 if url else 20),
    )


def stored(connection: HarperConnection, row: str) -> bool:
    return bool(ask(connection, "search_by_id", ids=[row], get_attributes=["id"]).json())


def test_without_rules_it_only_takes_notes(
    proxy: FaultProxy, harper_connection: HarperConnection
) -> None:
    before = time.monotonic()
    answer = ask(harper_connection, "upsert", proxy.url, records=[{"id": "n1"}, {"id": "n2"}])
    assert answer.json()["upserted_hashes"] == ["n1", "n2"]
    assert answer.headers["Server"].startswith("Unlicensed")
    (seen,) = proxy.seen()
    assert (seen.method, seen.path, seen.operation, seen.table) == ("POST", "/", "upsert", TABLE)
    assert (seen.records, seen.size, seen.status) == (2, len(answer.request.body or b""), 200)
    assert before < seen.at < time.monotonic()
    assert requests.get(f"{proxy.url}/health", timeout=5).text == "HarperDB is running."
    assert proxy.seen()[-1].method == "GET"


@pytest.mark.parametrize(
    ("fault", "outcome", "applied"),
    [
        (Answer(503, {"error": "busy"}, {"Retry-After": "7"}), 503, False),
        (NoAnswer(), requests.ConnectionError, True),
        (CutAnswer(), requests.exceptions.ChunkedEncodingError, True),
        (LateAnswer(0.1), 200, True),
        (LateAnswer(5.0), requests.ReadTimeout, True),
        (Delay(0.1), 200, True),
        (Reset("before"), requests.ConnectionError, False),
        (Reset("inside"), requests.ConnectionError, False),
        (Reset("after"), requests.ConnectionError, False),
        (Stall(), requests.ReadTimeout, False),
    ],
    ids=str,
)
def test_each_fault_is_seen_by_the_client_and_applied_or_not(
    proxy: FaultProxy,
    harper_connection: HarperConnection,
    fault: Fault,
    outcome: int | type[Exception],
    applied: bool,
    request: pytest.FixtureRequest,
) -> None:
    row = request.node.name
    proxy.on(fault, operation="upsert", table=TABLE)
    records = [{"id": row, "filling": "x" * 2_000_000}]  # more than a socket holds
    if isinstance(outcome, int):
        answer = ask(harper_connection, "upsert", proxy.url, records=records)
        assert answer.status_code == outcome
        assert answer.headers.get("Retry-After") == ("7" if outcome == 503 else None)
    else:
        with pytest.raises(outcome):
            ask(harper_connection, "upsert", proxy.url, records=records)
    assert proxy.seen()[-1].fault == fault
    assert proxy.seen()[-1].forwarded is applied
    assert stored(harper_connection, row) is applied
    assert ask(harper_connection, "upsert", proxy.url, records=[]).status_code == 200


def test_a_rule_waits_for_its_request_and_for_its_turn(
    proxy: FaultProxy, harper_connection: HarperConnection
) -> None:
    proxy.on(Answer(500), matching=lambda seen: b"bad" in seen.body)
    proxy.on(Answer(429), operation="upsert", times=2)
    statuses = [
        ask(harper_connection, "upsert", proxy.url, records=[{"id": row}]).status_code
        for row in ("good", "bad", "good", "bad")
    ]
    assert statuses == [429, 500, 429, 200]


def test_a_request_can_be_held_until_the_test_lets_it_go(
    proxy: FaultProxy, harper_connection: HarperConnection
) -> None:
    go = threading.Event()
    proxy.on(Delay(go))
    with pytest.raises(requests.ReadTimeout):
        ask(harper_connection, "upsert", proxy.url, records=[{"id": "held"}])
    assert not stored(harper_connection, "held")
    go.set()
    deadline = time.monotonic() + 5
    while not stored(harper_connection, "held"):
        assert time.monotonic() < deadline
