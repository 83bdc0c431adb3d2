"""How requests travel: connections, the guard before the send, and what must stay secret."""

import base64
import logging
import ssl
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from pydantic import SecretStr

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.errors import BqhError
from bq_harper_assets.retries.breaker import Breakers
from bq_harper_assets.retries.retry import Retry, RetryPolicy
from bq_harper_assets.stores.harper.answers import WriteCount
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.errors import HarperError, HarperUnavailable, HarperUnsafe
from bq_harper_assets.stores.harper.transport import Timeouts
from bq_harper_assets_tests.fault_proxy import (
    Answer,
    CutAnswer,
    Fault,
    FaultProxy,
    NoAnswer,
    Reset,
    Stall,
)
from bq_harper_assets_tests.stores.harper_clients import (
    ROWS,
    Clock,
    Make,
    clients_of,
    direct_client,
)

pytestmark = pytest.mark.harper
STATUSES = (200, 307, 400, 401, 403, 500, 503)


@pytest.fixture(scope="module")
def direct(harper_connection: HarperConnection) -> Iterator[HarperClient]:
    with direct_client(harper_connection) as client:
        yield client


@pytest.fixture
def proxy(harper_connection: HarperConnection, direct: HarperClient) -> Iterator[FaultProxy]:
    with FaultProxy(harper_connection.url) as proxy:
        yield proxy


@pytest.fixture
def tls_server(tmp_path: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """Its address, its own certificate, and the requests that got through."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, got = tmp_path / "certificate.pem", list[str]()
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "key.pem").write_bytes(secret)
    pem.write_bytes(certificate.public_bytes(Encoding.PEM))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(HTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            pass  # a client that does not trust it hangs up

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, tmp_path / "key.pem")
    with Server(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"https://localhost:{server.server_address[1]}", pem, got
        server.shutdown()
        thread.join()


@pytest.fixture
def make(harper_connection: HarperConnection, proxy: FaultProxy) -> Iterator[Make]:
    """Clients that talk through the proxy."""
    with clients_of(harper_connection.model_copy(update={"url": proxy.url})) as make:
        yield make


@pytest.mark.promise("A6")
def test_a_connection_that_harper_closed_after_5_s_is_survived(
    make: Make, harper_connection: HarperConnection
) -> None:
    retries: list[Retry] = []
    # With a clock that stands still the client takes the connection for a fresh one.
    client = make(
        harper_connection, clock=Clock(), retry=RetryPolicy(max_retries=0), on_retry=retries.append
    )
    client.upsert(ROWS, [{"id": "k"}])
    time.sleep(5.3)
    assert client.upsert(ROWS, [{"id": "k"}]) == WriteCount(1)
    assert retries == []


@pytest.mark.promise("A6")
def test_a_connection_that_breaks_after_being_idle_is_replaced_without_a_retry(
    make: Make, proxy: FaultProxy
) -> None:
    clock = Clock()
    client = make(clock=clock, retry=RetryPolicy(max_retries=0))
    client.upsert(ROWS, [{"id": "k"}])
    proxy.on(Reset("after"))
    clock.now += 2
    assert client.upsert(ROWS, [{"id": "k"}]) == WriteCount(1)
    first, broken, again = proxy.seen()
    assert first.connection == broken.connection != again.connection
    # Whether Harper has applied it is not known, whatever became of the second.
    assert client.last_unanswered_at == clock.now

    proxy.on(Reset("after"))
    with pytest.raises(HarperUnavailable, match="closed the connection"):
        client.upsert(ROWS, [{"id": "k"}])  # not idle, so this is a failure


def test_a_connection_that_is_about_to_be_closed_is_not_used(make: Make, proxy: FaultProxy) -> None:
    clock = Clock()
    client = make(clock=clock)
    for pause in (0.0, 1.0, 4.1):
        clock.now += pause
        client.upsert(ROWS, [])
    one, same, other = (seen.connection for seen in proxy.seen())
    assert one == same != other


def test_many_threads_share_a_client_and_its_connections(make: Make, proxy: FaultProxy) -> None:
    client = make()
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda n: client.upsert(ROWS, [{"id": f"p{n}"}]), range(80)))
    assert done == [WriteCount(1)] * 80
    assert len({seen.connection for seen in proxy.seen()}) <= 8


def test_nothing_is_sent_once_the_guard_says_no(make: Make, proxy: FaultProxy) -> None:
    class TooLate(Exception):
        pass

    sends = 0

    def guard() -> None:
        nonlocal sends
        sends += 1
        if sends > 2:
            raise TooLate

    client = make(send_guard=guard, breakers=Breakers())
    proxy.on(Answer(503), operation="upsert", times=9)
    with pytest.raises(TooLate):
        client.upsert(ROWS, [{"id": "g"}])
    assert sends == 3
    assert [seen.size for seen in proxy.seen() if seen.body] == [proxy.seen()[0].size] * 2
    assert client.last_unanswered_at is None
    for _ in range(6):  # none of these counts for the breaker, which five failures would open
        with pytest.raises(TooLate):
            client.upsert(ROWS, [{"id": "g"}])


def test_the_guard_is_asked_when_the_connection_stands_and_not_before(
    harper_connection: HarperConnection,
) -> None:
    with FaultProxy(harper_connection.url) as proxy:
        connection = harper_connection.model_copy(update={"url": proxy.url})
    asked: list[float] = []
    with (
        HarperClient(
            connection,
            retry=RetryPolicy(max_retries=0),
            breakers=Breakers(),
            send_guard=lambda: asked.append(time.monotonic()),
        ) as client,
        pytest.raises(HarperUnavailable),
    ):
        client.describe_all()
    assert asked == []


@pytest.mark.parametrize(
    ("fault", "unanswered"),
    [
        (NoAnswer(), True),
        (Reset("after"), True),
        (CutAnswer(), True),
        (Stall(), True),
        (Answer(504), True),
        (Answer(502), True),
        (Answer(503), False),
        (Answer(400), False),
    ],
    ids=str,
)
def test_it_is_known_when_the_last_write_without_an_answer_was_sent(
    make: Make, proxy: FaultProxy, fault: Fault, unanswered: bool
) -> None:
    clock = Clock()
    client = make(clock=clock, retry=RetryPolicy(max_retries=0), timeouts=Timeouts(5, 0.2))
    proxy.on(fault, times=2)
    with pytest.raises(HarperError):
        client.search_by_id(ROWS, ["a"])
    assert client.last_unanswered_at is None  # a read has no effect
    clock.now += 5
    with pytest.raises(HarperError):
        client.upsert(ROWS, [{"id": "u"}])
    clock.now += 5
    client.upsert(ROWS, [{"id": "u"}])  # a later success does not recall it
    assert client.last_unanswered_at == (1005.0 if unanswered else None)


@pytest.mark.promise("O2")
def test_the_password_is_in_no_error_log_or_repr(
    make: Make,
    proxy: FaultProxy,
    harper_connection: HarperConnection,
    caplog: pytest.LogCaptureFixture,
) -> None:
    user, secret, token = harper_connection.user, "canary-pässword-77", "canary-token-77"
    encoded = base64.b64encode(f"{user}:{secret}".encode("latin-1")).decode("ascii")
    told = []
    for update, header in (
        ({"password": SecretStr(secret)}, f"Basic {encoded}"),
        ({"password": SecretStr(secret), "token": SecretStr(token)}, f"Bearer {token}"),
    ):
        connection = harper_connection.model_copy(update={"url": proxy.url, **update})
        client = make(connection, breakers=Breakers())
        # The worst server: it says back what it was told, wherever it can.
        echo = f"{secret} {header}"
        body = {"error": echo, "unauthorized_access": [echo], "invalid_schema_items": [echo]}
        answers = [Answer(code, body, {"Location": f"http://{secret}@x/"}) for code in STATUSES]
        faults: list[Fault] = [*answers, NoAnswer(), NoAnswer(), *[answers[-1]] * 3]
        for fault in faults:
            proxy.heal()
            proxy.on(fault, times=9)
            with caplog.at_level(logging.DEBUG), pytest.raises(BqhError) as caught:
                client.upsert(ROWS, [{"id": "x"}])
            told += [*traceback.format_exception(caught.value), repr(caught.value)]
            # A library's error carries its request, and that the login.
            assert getattr(caught.value.__cause__, "request", None) is None
        assert proxy.seen()[-1].headers["authorization"] == header
        told += [repr(client), repr(connection)]
    text = "\n".join([*told, caplog.text])
    assert "circuit breaker open" in text
    assert "***" in text
    for hidden in ("canary", encoded):
        assert hidden not in text


@pytest.mark.promise("A6")
@pytest.mark.parametrize(
    ("update", "words"),
    [
        ({"url": "http://harper.example.com:9925"}, "without TLS"),
        ({"url": "http://user:canary@127.0.0.1:9925"}, "must not hold a user or password"),
        ({"url": "ftp://127.0.0.1"}, "must be a URL"),
        ({"password": SecretStr("canary-€")}, "beyond Latin-1"),
        ({"token": SecretStr("canary\r\nX-Evil: 1")}, "token that no header can carry"),
    ],
)
def test_an_unsafe_address_is_refused_before_anything_is_sent(
    harper_connection: HarperConnection, update: dict[str, Any], words: str
) -> None:
    with pytest.raises(HarperUnsafe, match=words) as caught:
        HarperClient(harper_connection.model_copy(update=update))
    assert "canary" not in str(caught.value)


@pytest.mark.promise("A6")
def test_nothing_is_sent_to_a_server_whose_certificate_is_not_trusted(
    make: Make,
    harper_connection: HarperConnection,
    tls_server: tuple[str, Path, list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, certificate, got = tls_server
    connection = harper_connection.model_copy(update={"url": url})
    monkeypatch.setenv("CURL_CA_BUNDLE", "")  # turns the check off in other programs
    with pytest.raises(HarperUnsafe, match="certificate that is not trusted"):
        make(connection).describe_all()
    assert got == []
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    assert make(connection).describe_all() == {}


def test_plain_http_to_another_machine_is_possible_on_purpose(
    harper_connection: HarperConnection,
) -> None:
    update = {"url": "http://harper.example.com:9925", "allow_http": True}
    HarperClient(harper_connection.model_copy(update=update)).close()


def test_a_proxy_or_netrc_of_the_environment_is_not_used(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login nobody password nothing\n", encoding="ascii")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert make().server_threads()
