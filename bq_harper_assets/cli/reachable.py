"""Whether a server listens at all, asked before a command that a person typed does anything.

Runs under way and automations are patient with a server that is away; somebody at a terminal
wants to hear of it at once.
"""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from bq_harper_assets.contract.profile import LOCAL
from bq_harper_assets.contract.project import Project
from bq_harper_assets.errors import BqhError

CONNECT_S = 3.0  # for all servers together: they are tried side by side


class NotReachable(BqhError):
    """Nothing listens at an address."""


def require_servers(project: Project, *, harper: bool = True, bigquery: bool = True) -> None:
    """NotReachable, in one line, if one that the command needs does not answer."""
    addresses = list(_addresses(project, harper=harper, bigquery=bigquery))
    with ThreadPoolExecutor(max(len(addresses), 1)) as pool:
        answers = list(pool.map(lambda each: listens(*each[2:]), addresses))
    away = [each[:2] for each, is_there in zip(addresses, answers, strict=True) if not is_there]
    if away:
        then = "bqh up" if project.profile_name == LOCAL else "bqh doctor"
        does = " and ".join(f"{store} does not answer at {url}" for store, url in away)
        raise NotReachable(f"{does}: {then}")


def listens(host: str, port: int) -> bool:
    """Whether something takes a connection there, now."""
    try:
        with socket.create_connection((host, port), timeout=CONNECT_S):
            return True
    except OSError:
        return False


def _addresses(
    project: Project, *, harper: bool, bigquery: bool
) -> Iterator[tuple[str, str, str, int]]:
    """(store, URL, host, port); Google's own servers may need a proxy and are not tried."""
    if harper:
        url = urlsplit(project.harper.url)
        port = url.port or (443 if url.scheme == "https" else 80)
        yield "Harper", project.harper.url, str(url.hostname), port
    if bigquery and (endpoint := project.bigquery.endpoint):
        url = urlsplit(endpoint)
        yield "BigQuery", endpoint, str(url.hostname), url.port or 80
