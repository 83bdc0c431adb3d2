"""Starts, checks and stops the local stack as one thing, for the CLI, the demo and the tests."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Literal

from bq_harper_assets.contract.settings.addresses import StackAddresses, write_addresses
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.local.emulator import PROJECT, EmulatorServer
from bq_harper_assets.local.errors import StackError
from bq_harper_assets.local.folder import StackFolder, StackState
from bq_harper_assets.local.harper import ADMIN, LICENCE, HarperServer
from bq_harper_assets.local.ports import (
    LOOPBACK,
    PREFERRED,
    Ports,
    choose_ports,
    one_chooser_at_a_time,
)
from bq_harper_assets.local.processes import KILL_AFTER_SECONDS, Process, is_running, start, stop
from bq_harper_assets.local.servers import Server

_Say = Callable[[str], None]
ServerState = Literal["running", "not answering", "died", "stopped"]
PORTS_OF = {"harper": ("harper", "harper_rest"), "bigquery": ("bigquery", "bigquery_storage")}
SERVERS = tuple(PORTS_OF)
LOOK_EVERY_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class ServerStatus:
    """A server status says whether one server runs, and where it listens and logs."""

    name: str
    state: ServerState
    pid: int | None
    ports: tuple[int, ...]
    log: Path


@dataclass(frozen=True)
class StackStatus:
    """A stack status has the status of every server of one stack."""

    folder: Path
    servers: tuple[ServerStatus, ...]

    @property
    def running(self) -> bool:
        return all(server.state == "running" for server in self.servers)


class LocalStack:
    """A local stack is known by its folder: each command makes an object of its own for it."""

    def __init__(
        self,
        project_root: Path,
        folder: Path | None = None,
        *,
        ports: Mapping[str, int] | None = None,
        preferred: Mapping[str, int] = PREFERRED,
        threads: int | None = None,
        persistent: bool = True,
        kill_after: float = KILL_AFTER_SECONDS,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._project_root = project_root
        self._folder = StackFolder((folder or local_folder(project_root)).resolve())
        self._asked = dict(ports or {})
        self._preferred = preferred
        self._threads = threads or max(1, (os.cpu_count() or 1) - 1)
        self._persistent = persistent
        self._kill_after = kill_after
        self._environ = environ
        self._started_here: list[str] = []

    def up(self, say: _Say, servers: Sequence[str] = SERVERS) -> StackAddresses:
        """Starts what does not run yet; if that fails, it stops again what it has started."""
        self._folder.make()
        with self._folder.locked(say):
            state = self._clean_up(say)
            missing = [name for name in servers if name not in state.processes]
            self._refuse_to_move(state)
            if missing:
                with one_chooser_at_a_time(say):
                    state = self._start(missing, state, say)
            else:
                say("the local stack is running already")
            assert state.ports is not None
            addresses = self._addresses(state.ports)
            if set(state.processes) == set(SERVERS):
                write_addresses(self._folder.path, addresses)
            return addresses

    def down(self, say: _Say) -> None:
        """Stops what runs; data, ports and password stay for the next start."""
        if not self._folder.state_file.is_file():
            say("the local stack is not running")
            return
        with self._folder.locked(say):
            if not self._stop(SERVERS, say):
                say("the local stack is not running")

    def purge(self, say: _Say) -> None:
        """Stops what runs, and deletes all that is the stack's: tables, password, logs, ports."""
        if not self._folder.path.is_dir():
            say("there is no local stack to delete")
            return
        with self._folder.locked(say):
            self._stop(SERVERS, say)
            try:
                self._folder.delete_contents()
            except OSError as error:
                raise StackError(
                    f"the stack is stopped, but not all of it can be deleted: {error}. "
                    "Next: make that place writable, and type again: bqh down --purge"
                ) from error
        say(f"the data of the local stack in {self._folder.path} is deleted")

    def status(self) -> StackStatus:
        """Returns the status of all servers, and changes nothing."""
        state = self._folder.read_state()
        return StackStatus(
            self._folder.path, tuple(self._status_of(name, state) for name in SERVERS)
        )

    def __enter__(self) -> StackAddresses:
        return self.up(lambda _: None)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stops what this object started: a stack that ran before goes on."""
        with self._folder.locked(lambda _: None):
            self._stop(self._started_here, lambda _: None)
        self._started_here.clear()

    def _server(self, name: str, ports: Ports) -> Server:
        if name == HarperServer.name:
            return HarperServer(
                self._project_root, self._folder, ports, self._threads, self._environ
            )
        return EmulatorServer(self._folder, ports, self._persistent, self._environ)

    def _clean_up(self, say: _Say) -> StackState:
        """Forgets servers that have ended; stops those that do not answer, as half-started ones."""
        state = self._folder.read_state()
        alive: dict[str, Process] = {}
        for name, process in state.processes.items():
            assert state.ports is not None
            server = self._server(name, state.ports)
            if not is_running(process):
                say(f"{server.title} had ended; it is started again")
            elif server.answers():
                alive[name] = process
            else:
                say(f"{server.title} runs but does not answer; it is started again")
                stop(process, self._kill_after)
        state = StackState(ports=state.ports, processes=alive)
        self._folder.write_state(state)
        return state

    def _refuse_to_move(self, state: StackState) -> None:
        for name in state.processes:
            for port_name in PORTS_OF[name]:
                now = getattr(state.ports, port_name)
                asked = self._asked.get(port_name, now)
                if asked != now:
                    option = f"--{port_name.replace('_', '-')}-port {asked}"
                    raise StackError(
                        f"the local stack is running already, on port {now} and not on {asked}. "
                        f"It goes on running. Next: bqh down, then bqh up {option}"
                    )

    def _start(self, names: Sequence[str], state: StackState, say: _Say) -> StackState:
        keep = frozenset(port for name in state.processes for port in PORTS_OF[name])
        ports = choose_ports(self._asked, state.ports, self._preferred, say, keep)
        self._folder.write_state(StackState(ports=ports, processes=state.processes))
        if HarperServer.name in names:
            say(LICENCE)
        servers = [self._server(name, ports) for name in names]
        say(f"starting {' and '.join(server.title for server in servers)}")
        try:
            self._boot(servers, say)
        except BaseException:
            # This is for Ctrl-C too: nothing half-started may stay behind.
            self._stop(names, lambda _: None)
            raise
        self._started_here += names
        return self._folder.read_state()

    def _boot(self, servers: Sequence[Server], say: _Say) -> None:
        began = time.monotonic()
        booting = {server.title: server.boot(partial(self._launch, server)) for server in servers}
        while booting:
            for title, steps in list(booting.items()):
                if next(steps, self) is self:
                    say(f"{title} is ready ({time.monotonic() - began:.0f} s)")
                    del booting[title]
            time.sleep(LOOK_EVERY_SECONDS)

    def _launch(
        self, server: Server, command: Sequence[str], environ: Mapping[str, str]
    ) -> Process:
        """Starts a server and records it at once: the next command finds it even after a kill."""
        process = start(command, environ, self._log(server.name))
        state = self._folder.read_state()
        processes = {**state.processes, server.name: process}
        self._folder.write_state(StackState(ports=state.ports, processes=processes))
        return process

    def _stop(self, names: Iterable[str], say: _Say) -> bool:
        """Stops these servers, and says whether one of them ran."""
        state = self._folder.read_state()
        left = dict(state.processes)
        stopped = []
        for name in names:
            process = left.pop(name, None)
            if process and stop(process, self._kill_after):
                stopped.append(name)
                say(f"stopped {name} (process {process.pid})")
        self._folder.write_state(StackState(ports=state.ports, processes=left))
        return bool(stopped)

    def _status_of(self, name: str, state: StackState) -> ServerStatus:
        process = state.processes.get(name)
        ports = tuple(getattr(state.ports, port) for port in PORTS_OF[name]) if state.ports else ()
        word: ServerState = "stopped"
        if process and state.ports:
            alive = is_running(process)
            answers = alive and self._server(name, state.ports).answers()
            word = "running" if answers else "not answering" if alive else "died"
        pid = process.pid if process and word in ("running", "not answering") else None
        return ServerStatus(name=name, state=word, pid=pid, ports=ports, log=self._log(name))

    def _log(self, name: str) -> Path:
        return self._folder.logs / f"{name}.log"

    def _addresses(self, ports: Ports) -> StackAddresses:
        return StackAddresses(
            harper_url=f"http://{LOOPBACK}:{ports.harper}",
            harper_rest_url=f"http://{LOOPBACK}:{ports.harper_rest}",
            harper_user=ADMIN,
            harper_password_file=self._folder.password_file,
            bigquery_url=f"http://{LOOPBACK}:{ports.bigquery}",
            bigquery_storage=f"{LOOPBACK}:{ports.bigquery_storage}",
            bigquery_project=PROJECT,
        )
