"""The configuration has URLs and host:port pairs, which are refused with a password inside."""

import ipaddress
import re
from typing import Any
from urllib.parse import urlsplit

from bq_harper_assets.contract.fields.declared_model import Reads

_HOST = r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])"
_HOST_AND_PORT = re.compile(rf"{_HOST}:([0-9]{{1,5}})")
_AUTHORITY = re.compile(rf"{_HOST}(?::[0-9]{{1,5}})?")


def is_loopback(url: str) -> bool:
    """Says whether what is sent there stays on this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(url: str) -> str:
    """Returns the host as it stands in a URL, with the brackets of an IPv6 address."""
    host = urlsplit(url).hostname or ""
    return f"[{host}]" if ":" in host else host


def _server_url(value: Any, *, instead: str) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a URL such as http://localhost:9925")
    text = value.strip().rstrip("/")
    if "@" in text:
        raise ValueError(f"must not hold a user or password: {instead}")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        port, parts = None, urlsplit("")
    known = parts.scheme in ("http", "https") and _AUTHORITY.fullmatch(parts.netloc)
    if not known or port == 0 or re.search(r"\s", text):
        raise ValueError(
            "must be a URL such as http://localhost:9925 or https://harper.example.com:9925"
        )
    if parts.path or "?" in text or "#" in text:
        raise ValueError("must end after the host and port")
    # The scheme in lower case: what is asked of http must not miss HTTP.
    return f"{parts.scheme}://{parts.netloc}"


def _emulator_url(value: Any) -> str:
    # BIGQUERY_EMULATOR_HOST is host:port in Google's own tools; here both forms are taken.
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, str) and "://" not in text:
        text = f"http://{text}"
    return _server_url(text, instead="an emulator needs none")


def _harper_url(value: Any) -> str:
    return _server_url(value, instead="give them as OPERATIONSAPI_USER and OPERATIONSAPI_PASS")


def _host_and_port(value: Any) -> str:
    match = _HOST_AND_PORT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or not 0 < int(match[1]) < 65536:
        raise ValueError("must be host:port, such as localhost:9060")
    return match[0]


HARPER_URL = Reads(_harper_url, {"type": "string"})
EMULATOR_URL = Reads(_emulator_url, {"type": "string"})
HOST_AND_PORT = Reads(_host_and_port, {"type": "string"})
