"""Chooses ports on loopback: those asked for, remembered or preferred, or free, in this order."""

import os
import socket
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from bq_harper_assets.local.errors import StackError
from bq_harper_assets.local.locks import locked

LOOPBACK = "127.0.0.1"
# These are Harper's and the emulator's own defaults, which other tools expect.
PREFERRED = {"harper": 9925, "harper_rest": 9926, "bigquery": 9050, "bigquery_storage": 9060}
SERVER_TITLES = {
    "harper": "Harper's Operations API",
    "harper_rest": "Harper's REST API",
    "bigquery": "BigQuery",
    "bigquery_storage": "BigQuery's Storage API",
}


class Ports(BaseModel):
    """Ports are the numbers on which the servers of one stack listen."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    harper: int
    harper_rest: int
    bigquery: int
    bigquery_storage: int


def choose_ports(
    asked: Mapping[str, int],
    remembered: Ports | None,
    preferred: Mapping[str, int],
    say: Callable[[str], None],
    keep: frozenset[str] = frozenset(),
) -> Ports:
    """Chooses a port for each server; `keep` names the ports of our servers that run already."""
    chosen: dict[str, int] = {}
    for name in PREFERRED:
        before = getattr(remembered, name) if remembered else None
        if name in keep and before:
            chosen[name] = before
        elif name in asked:
            chosen[name] = _asked(name, asked[name], set(chosen.values()))
        else:
            wanted = before or preferred.get(name)
            chosen[name] = _wanted_or_free(name, wanted, set(chosen.values()), say)
    return Ports(**chosen)


def is_free(port: int) -> bool:
    """Says whether nobody listens on the port, on loopback or on all addresses."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Without this option a port counts as taken for a minute after its server has stopped.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen()
        except OSError:
            return False
    return True


def one_chooser_at_a_time(say: Callable[[str], None]) -> AbstractContextManager[None]:
    """Locks the choice until the servers listen: Harper would share a taken port silently."""
    file = Path(tempfile.gettempdir()) / f"bqh-ports-{os.getuid()}.lock"
    return locked(file, say, "waiting for another stack to finish its start")


def _asked(name: str, port: int, taken: set[int]) -> int:
    if port in taken or not is_free(port):
        option = name.replace("_", "-")
        raise StackError(
            f"port {port}, asked for {SERVER_TITLES[name]}, is in use by another program. "
            f"Nothing was started. Next: leave out --{option}-port to take a free one, or type: "
            f"bqh up --{option}-port {_free(taken)}"
        )
    return port


def _wanted_or_free(
    name: str, wanted: int | None, taken: set[int], say: Callable[[str], None]
) -> int:
    if wanted is None:
        return _free(taken)
    if wanted not in taken and is_free(wanted):
        return wanted
    port = _free(taken)
    say(f"port {wanted} is in use by another program: {SERVER_TITLES[name]} listens on {port}")
    return port


def _free(taken: set[int]) -> int:
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((LOOPBACK, 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            return port
