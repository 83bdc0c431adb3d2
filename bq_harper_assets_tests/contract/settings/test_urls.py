"""Addresses as users write them: which are taken, and what is said of the others."""

import pytest

from bq_harper_assets.contract.fields.declared_model import Reads
from bq_harper_assets.contract.settings.urls import (
    EMULATOR_URL,
    HARPER_URL,
    HOST_AND_PORT,
    host_of,
)
from bq_harper_assets_tests.contract.conftest import Disk


@pytest.mark.promise("A13")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"])
def test_plain_http_is_right_on_this_machine(host: str, disk: Disk) -> None:
    environ = {"OPERATIONSAPI_URL": f"http://{host}:9925/", "OPERATIONSAPI_PASS": "p"}
    assert disk.load(environ).harper.url == f"http://{host}:9925"


@pytest.mark.promise("A13")
@pytest.mark.parametrize("scheme", ["http", "HTTP"])
@pytest.mark.parametrize("host", ["harper", "10.0.0.1", "localhost.example.com", "[2001:db8::1]"])
def test_plain_http_to_another_machine_needs_a_flag(host: str, scheme: str, disk: Disk) -> None:
    environ = {"OPERATIONSAPI_URL": f"{scheme}://{host}:9925", "OPERATIONSAPI_PASS": "p"}
    assert "unencrypted" in disk.refusal(environ)
    disk.write("config/profiles/local.yaml", "harper:\n  allow_http: true\n")
    assert disk.load(environ).harper.allow_http is True


@pytest.mark.parametrize(
    "url",
    [
        "://harper",
        "ftp://harper",
        "http://",
        "http://h:0",
        "http://h:99999",
        "http://h/a",
        "http://h h",
        "http://[::1",
        "http://[::1]]:9925",
        "https://h?",
        "https://h#",
        "https://h%00",
        "https://h\udcff",
    ],
)
@pytest.mark.parametrize("variable", ["OPERATIONSAPI_URL", "BIGQUERY_EMULATOR_HOST"])
def test_what_is_no_url_is_refused(url: str, variable: str, disk: Disk) -> None:
    told = disk.refusal({variable: url})
    assert told.startswith("1 problem ")
    assert f"environment: {variable} = " in told


@pytest.mark.parametrize("variable", ["OPERATIONSAPI_URL", "BIGQUERY_EMULATOR_HOST"])
def test_a_url_with_a_password_inside_is_refused(variable: str, disk: Disk) -> None:
    told = disk.refusal({variable: "http://u:hunter2@localhost:1"})
    assert "must not hold a user or password" in told
    assert "hunter2" not in told


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("localhost:9050", "http://localhost:9050"),
        (" localhost:9050 ", "http://localhost:9050"),
        ("https://emulator/", "https://emulator"),
        ("HTTP://emulator:1", "http://emulator:1"),
    ],
)
def test_an_emulator_may_be_written_without_a_scheme(written: str, url: str) -> None:
    assert EMULATOR_URL.parse(written) == url


@pytest.mark.parametrize("reads", [HARPER_URL, EMULATOR_URL, HOST_AND_PORT])
def test_a_number_is_no_address(reads: Reads) -> None:
    with pytest.raises(ValueError, match="must be "):
        reads.parse(9925)


@pytest.mark.parametrize("written", ["localhost:1", "a.b:65535", " [::1]:9060 "])
def test_a_host_with_its_port_is_taken(written: str) -> None:
    assert HOST_AND_PORT.parse(written) == written.strip()


@pytest.mark.parametrize("written", ["localhost", "localhost:0", "h:65536", "h:1/", "http://h:1"])
def test_what_is_no_host_with_a_port_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="must be host:port, such as localhost:9060"):
        HOST_AND_PORT.parse(written)


def test_a_host_stands_in_brackets_where_it_needs_them() -> None:
    urls = ("http://harper:9925", "http://[::1]:9925", "nothing")
    assert [host_of(url) for url in urls] == ["harper", "[::1]", ""]
