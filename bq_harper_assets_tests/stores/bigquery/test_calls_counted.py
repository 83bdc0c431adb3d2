"""How often a call is sent, by what it fails with; nothing leaves this process."""

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from google.api_core import exceptions

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.retries.breaker import Breakers, CircuitOpen
from bq_harper_assets.retries.retry import Retry, RetryPolicy, StepDeadline
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.errors import (
    BigQueryBusy,
    BigQueryRefused,
    BigQueryUnavailable,
    Feature,
    ReadSessionLost,
)

SERVICE = BigQueryConnection(project="p")
EMULATOR = SERVICE.model_copy(update={"endpoint": "http://127.0.0.1:9"})
AWAY = exceptions.BadGateway("away")  # type: ignore[no-untyped-call]
BUSY = exceptions.TooManyRequests("later")  # type: ignore[no-untyped-call]
OWN = exceptions.InternalServerError(  # type: ignore[no-untyped-call]
    "it fails", response=SimpleNamespace(status_code=500)
)
WRONG = exceptions.BadRequest("no such column")  # type: ignore[no-untyped-call]


def failing(error: Exception, times: int = 99) -> Callable[[], str]:
    left = [error] * times

    def send() -> str:
        if left:
            raise left.pop()
        return "answer"

    return send


def ask(calls: BigQueryCalls, send: Callable[[], str], **more: Any) -> str:
    return calls.call(send, doing="looking", feature=Feature.QUERY, **more)


def calls_of(connection: BigQueryConnection, **settings: Any) -> tuple[BigQueryCalls, list[float]]:
    waits: list[float] = []
    return BigQueryCalls(connection, sleep=waits.append, **settings), waits


@pytest.mark.parametrize(
    ("connection", "retries", "error", "sent", "told"),
    [
        (SERVICE, None, AWAY, 6, BigQueryUnavailable),
        (SERVICE, 0, AWAY, 1, BigQueryUnavailable),
        (SERVICE, 2, AWAY, 3, BigQueryUnavailable),
        (SERVICE, 2, BUSY, 3, BigQueryBusy),
        (SERVICE, None, OWN, 6, BigQueryUnavailable),
        (SERVICE, None, WRONG, 1, BigQueryRefused),
        (EMULATOR, None, AWAY, 6, BigQueryUnavailable),
        (EMULATOR, None, OWN, 3, BigQueryRefused),
        (EMULATOR, 1, OWN, 2, BigQueryUnavailable),
    ],
)
def test_a_call_that_goes_on_failing_is_sent_as_often_as_is_meant(
    connection: BigQueryConnection,
    retries: int | None,
    error: Exception,
    sent: int,
    told: type[Exception],
) -> None:
    calls, waits = calls_of(connection.model_copy(update={"max_retries": retries}))
    with pytest.raises(told) as raised:
        ask(calls, failing(error))
    assert type(raised.value) is told
    assert (calls.sent, len(waits)) == (sent, sent - 1)


def test_it_is_waited_before_each_try_and_each_is_told() -> None:
    retries: list[Retry] = []
    connection = SERVICE.model_copy(update={"initial_retry_delay_ms": 2_000})
    calls, waits = calls_of(connection, on_retry=retries.append)
    assert ask(calls, failing(AWAY, 2), table="orders", cell="c") == "answer"
    assert [round(retry.wait_s, 6) for retry in retries] == [round(wait, 6) for wait in waits]
    assert 2 <= waits[0] <= 4 <= waits[1] <= 8
    assert "looking on table 'orders'" in str(retries[0].call)
    assert calls.sent == 3


def test_a_storm_is_waited_out_unless_a_number_of_retries_is_named() -> None:
    calls, waits = calls_of(SERVICE, give_up_after=timedelta(hours=1))
    assert ask(calls, failing(BUSY, 30)) == "answer"
    assert len(waits) == 30
    named = SERVICE.model_copy(update={"max_retries": 2})
    calls, _ = calls_of(named, give_up_after=timedelta(hours=1))
    with pytest.raises(BigQueryBusy):
        ask(calls, failing(BUSY, 30))
    assert calls.sent == 3


def test_a_session_that_is_lost_is_not_asked_for_again_and_is_no_fault_of_the_table() -> None:
    calls, _ = calls_of(SERVICE, breakers=Breakers())
    for _ in range(9):
        with pytest.raises(ReadSessionLost):
            ask(calls, failing(ReadSessionLost("gone")), table="orders")
    assert calls.sent == 9
    assert ask(calls, failing(AWAY, 0), table="orders") == "answer"


def test_a_table_that_keeps_failing_is_left_alone_and_others_are_not() -> None:
    breakers, once = Breakers(), SERVICE.model_copy(update={"max_retries": 0})
    calls, _ = calls_of(once, breakers=breakers)
    for _ in range(5):
        with pytest.raises(BigQueryUnavailable):
            ask(calls, failing(AWAY), table="orders")
    for each in (calls, calls_of(once, breakers=breakers)[0]):
        with pytest.raises(CircuitOpen):
            ask(each, failing(AWAY, 0), table="orders")
    assert ask(calls, failing(AWAY, 0), table="ships") == "answer"
    assert calls.sent == 6


def test_an_answer_of_the_emulator_between_failures_does_not_start_the_count_anew_for_others() -> (
    None
):
    calls, _ = calls_of(EMULATOR)
    for _ in range(3):
        assert ask(calls, failing(OWN, 2)) == "answer"  # each call has a count of its own
    assert calls.sent == 9


def test_a_try_is_given_no_more_time_than_the_step_has_left() -> None:
    now = [0.0]
    deadline = StepDeadline(100, lambda: now[0])
    calls = BigQueryCalls(SERVICE, retry=RetryPolicy(deadline=deadline))
    assert (calls.request_s, calls.at_most_s(30), calls.at_most_s(600)) == (60, 30, 100)
    deadline.failed(0)
    now[0] = 70
    assert (calls.request_s, calls.at_most_s(600)) == (30, 30)
    calls.note_answer()
    assert calls.at_most_s(600) == 100
    without, _ = calls_of(SERVICE)
    without.note_answer()
    assert without.request_s == 60
