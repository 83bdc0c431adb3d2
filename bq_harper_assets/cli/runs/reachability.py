"""Servers must listen before a command that a person typed does anything.

Runs under way and automations are patient with a server that is away; somebody at a terminal
wants to hear of it at once.
"""

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.settings.profile import LOCAL
from bq_harper_assets.errors import BqhError
from bq_harper_assets.stores.finding import Finding

WITHIN_S = 4.0  # for all servers together, with the looking up of their names
_AT_LEAST_S = 0.5  # to log in, however long it took to find out that something listens
GOOGLE = "https://bigquery.googleapis.com"


class NotReachable(BqhError):
    """Nothing listens at the address of a store."""


class NotLoggedIn(BqhError):
    """What listens at Harper's address is no Harper, or does not take our user."""

    exit_code = 2  # what the user has set is wrong, and nothing was started


@dataclass(frozen=True)
class Address:
    """A store has a URL; its host, or the proxy on the way to it, is what is tried."""

    store: str
    url: str
    host: str
    port: int


def require_servers(project: Project, *, harper: bool = True, bigquery: bool = True) -> None:
    """Raises NotReachable, in one line, if a server that the command needs does not answer.

    Raises NotLoggedIn if Harper answers, and will answer every request with the same refusal.
    """
    ends = time.monotonic() + WITHIN_S
    addresses = list(_addresses(project, harper=harper, bigquery=bigquery))
    found = _listening(addresses, ends)
    away = [each for each in addresses if each not in found]
    if away:
        then = "bqh up" if project.profile_name == LOCAL else "bqh doctor"
        does = " and ".join(f"{each.store} does not answer at {each.url}" for each in away)
        raise NotReachable(f"{does}: {then}")
    if harper:
        _require_login(project.harper, ends)


def harper_listens(project: Project) -> bool:
    """Says whether something takes a connection at Harper's address."""
    address = _address("Harper", project.harper.url)
    return listens(address.host, address.port)


def listens(host: str, port: int) -> bool:
    """Says whether something takes a connection there, at one of the addresses of that name."""
    try:
        with socket.create_connection((host, port), timeout=WITHIN_S):
            return True
    except OSError:
        return False


def _require_login(connection: HarperConnection, ends: float) -> None:
    # Here and not above: it takes a moment to import.
    from bq_harper_assets.stores.harper.probe import lasting_refusal

    found: list[Finding] = []
    unsafe: list[BqhError] = []

    def look() -> None:
        try:
            refused = lasting_refusal(connection, max(ends - time.monotonic(), _AT_LEAST_S))
        except BqhError as error:
            unsafe.append(error)
        else:
            found.extend([refused] if refused else [])

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(max(ends - time.monotonic(), _AT_LEAST_S))
    for error in unsafe:
        raise error
    for refused in found:
        then = f"{refused.next_step}; bqh doctor checks it"
        raise NotLoggedIn(f"{refused.detail}. Nothing was started. Next: {then}")


def _listening(addresses: list[Address], ends: float) -> frozenset[Address]:
    """Finds the addresses that listen in time; nobody waits for the others."""
    found: set[Address] = set()

    def look(each: Address) -> None:
        if listens(each.host, each.port):
            found.add(each)

    # Not a pool: its threads would hold up the end of the process.
    looks = [threading.Thread(target=look, args=(each,), daemon=True) for each in addresses]
    for each in looks:
        each.start()
    for each in looks:
        each.join(max(ends - time.monotonic(), 0.0))
    return frozenset(found)


def _addresses(project: Project, *, harper: bool, bigquery: bool) -> Iterator[Address]:
    if harper:
        yield _address("Harper", project.harper.url)
    if bigquery and project.bigquery.endpoint:
        yield _address("BigQuery", project.bigquery.endpoint)
    elif bigquery:
        yield _google()


def _address(store: str, url: str) -> Address:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return Address(store, url, str(parts.hostname), port)


def _google() -> Address:
    """Gives Google's own address, or the proxy without which it cannot be reached from here."""
    direct = _address("BigQuery", GOOGLE)
    proxy = getproxies().get("https")
    if not proxy or proxy_bypass(direct.host):
        return direct
    by = _address("BigQuery", proxy if "://" in proxy else f"http://{proxy}")
    return Address("BigQuery", f"{GOOGLE} through {by.host}:{by.port}", by.host, by.port)
