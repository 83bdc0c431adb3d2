"""Ports are asked for, remembered, preferred or free, and never shared."""

import re
import socket
from collections.abc import Iterator

import pytest

from bq_harper_assets.local.errors import StackError
from bq_harper_assets.local.ports import Ports, choose_ports, is_free


@pytest.fixture
def busy() -> Iterator[int]:
    """A port on which another program listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def free() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def refuse_to_speak(line: str) -> None:
    raise AssertionError(f"there was nothing to say, but: {line}")


def test_preferred_ports_are_taken_if_they_are_free(free: int) -> None:
    ports = choose_ports({}, None, {"harper": free}, refuse_to_speak)
    assert ports.harper == free
    assert len({ports.harper, ports.harper_rest, ports.bigquery, ports.bigquery_storage}) == 4


def test_a_busy_preferred_port_is_replaced_and_that_is_said(busy: int) -> None:
    said: list[str] = []
    ports = choose_ports({}, None, {"harper": busy}, said.append)
    assert ports.harper != busy
    where = f"Harper's Operations API listens on {ports.harper}"
    assert said == [f"port {busy} is in use by another program: {where}"]


def test_remembered_ports_come_before_preferred_ones(free: int) -> None:
    before = choose_ports({}, None, {}, refuse_to_speak)
    assert choose_ports({}, before, {"bigquery": free}, refuse_to_speak) == before


def test_a_remembered_port_that_is_busy_now_is_replaced(busy: int) -> None:
    said: list[str] = []
    before = choose_ports({}, None, {}, refuse_to_speak)
    now = choose_ports({}, before.model_copy(update={"bigquery": busy}), {}, said.append)
    assert now == before.model_copy(update={"bigquery": now.bigquery})
    assert said == [f"port {busy} is in use by another program: BigQuery listens on {now.bigquery}"]


def test_a_port_of_a_running_server_is_kept(busy: int) -> None:
    before = Ports(harper=busy, harper_rest=busy, bigquery=busy, bigquery_storage=busy)
    kept = frozenset({"harper", "harper_rest", "bigquery", "bigquery_storage"})
    assert choose_ports({}, before, {}, refuse_to_speak, kept) == before


def test_a_busy_port_that_was_asked_for_is_an_error_with_a_way_out(busy: int) -> None:
    words = (
        f"port {busy}, asked for Harper's REST API, is in use by another program. Nothing was "
        "started. Next: leave out --harper-rest-port to take a free one, or type: "
        "bqh up --harper-rest-port "
    )
    with pytest.raises(StackError, match=f"^{re.escape(words)}(\\d+)$") as caught:
        choose_ports({"harper_rest": busy}, None, {}, refuse_to_speak)
    assert is_free(int(str(caught.value).split()[-1]))


def test_a_port_is_not_given_away_twice(free: int) -> None:
    with pytest.raises(StackError, match=f"port {free}, asked for BigQuery, is in use"):
        choose_ports({"harper": free, "bigquery": free}, None, {}, refuse_to_speak)


def test_a_listener_on_all_addresses_makes_a_port_busy() -> None:
    with socket.create_server(("", 0)) as listener:
        assert not is_free(listener.getsockname()[1])


def test_a_port_is_free_right_after_its_server_has_stopped() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        with socket.create_connection(address), listener.accept()[0] as served:
            served.close()  # the server's side closes first and lingers in the kernel
    assert is_free(address[1])
