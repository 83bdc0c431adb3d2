"""Clients for tests that talk to the real Harper, most of them through a fault proxy."""

import base64
import io
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import requests

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.retries.breaker import Breakers
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.harper.answers import Attribute
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.transport import Timeouts

ROWS = "ClientRows"
COLUMNS = (
    Attribute(name="id", type="String"),
    Attribute(name="at", type="String", indexed=True),
    Attribute(name="n", type="Float"),
)
FAST = RetryPolicy(max_retries=2, initial_delay_s=0.010)
PATIENCE = Timeouts(connect_s=5, read_s=20, slow_read_s=60)

Make = Callable[..., HarperClient]


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def admin(connection: HarperConnection, operation: str, **fields: Any) -> requests.Response:
    """What the client has no verb for."""
    return requests.post(
        connection.url,
        json={"operation": operation, **fields},
        auth=(connection.user, connection.password.get_secret_value()),
        timeout=20,
    )


def selected(connection: HarperConnection, select: str) -> list[dict[str, Any]]:
    """The rows of a SELECT, as somebody asks who looks into Harper."""
    answer = admin(connection, "sql", sql=select)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()
    return rows


def deployed(connection: HarperConnection, project: str, files: Mapping[str, str]) -> None:
    """A component of these files; Harper restarts its threads with it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    payload = base64.b64encode(packed.getvalue()).decode("ascii")
    answer = admin(connection, "deploy_component", project=project, payload=payload, restart=True)
    assert answer.status_code == 200, answer.text


@contextmanager
def direct_client(connection: HarperConnection) -> Iterator[HarperClient]:
    """Straight to Harper; the table is there."""
    with HarperClient(connection, breakers=Breakers(), timeouts=PATIENCE) as client:
        client.create_table(ROWS, "id", COLUMNS)
        yield client


@contextmanager
def clients_of(connection: HarperConnection) -> Iterator[Make]:
    """Makes clients with few and quick retries and breakers of their own, and closes them."""
    with ExitStack() as clients:

        def make(other: HarperConnection | None = None, **options: Any) -> HarperClient:
            given = {"retry": FAST, "breakers": Breakers(), "timeouts": PATIENCE, **options}
            return clients.enter_context(HarperClient(other or connection, **given))

        yield make
