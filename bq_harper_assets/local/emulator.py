"""The stack's BigQuery is the emulator, started by our launcher, which closes its gaps."""

import sys
from collections.abc import Iterator, Mapping

from bq_harper_assets.local.emulator_gaps import SESSION_MIB_VARIABLE
from bq_harper_assets.local.emulator_launcher import GAPS_OPEN_VARIABLE
from bq_harper_assets.local.folder import PRIVATE, StackFolder
from bq_harper_assets.local.ports import Ports
from bq_harper_assets.local.servers import (
    Start,
    child_environ,
    http_status,
    log_size,
    wait_until_ready,
)

PROJECT = "local"


class EmulatorServer:
    """An emulator server has its own HOME and data; without `persistent` its data ends with it."""

    name = "bigquery"
    title = "the BigQuery emulator"

    def __init__(
        self, folder: StackFolder, ports: Ports, persistent: bool, environ: Mapping[str, str]
    ) -> None:
        self._ports = ports
        self._persistent = persistent
        self._user_environ = environ
        self._data = folder.data / "bigquery"
        self._log = folder.logs / "bigquery.log"
        self._ready_file = self._data / "ready"

    def boot(self, start: Start) -> Iterator[None]:
        for place in ("home", "uploads"):
            (self._data / place).mkdir(parents=True, exist_ok=True, mode=PRIVATE)
        self._ready_file.unlink(missing_ok=True)
        log_start = log_size(self._log)
        process = start(self._command(), self._environ())
        yield from wait_until_ready(self, process, self._log, log_start)

    def answers(self) -> bool:
        # The file shows that it is this emulator, and that its second port is open too.
        return self._ready_file.exists() and (
            http_status(self._ports.bigquery, "GET", "/readyz") == 200
        )

    def _command(self) -> list[str]:
        command = [sys.executable, "-m", "bq_harper_assets.local.emulator_launcher"]
        command += ["--rest-port", str(self._ports.bigquery)]
        command += ["--grpc-port", str(self._ports.bigquery_storage)]
        command += ["--project", PROJECT, "--ready-file", str(self._ready_file)]
        command += ["--uploads", str(self._data / "uploads")]
        if self._persistent:
            command += ["--data", str(self._data / "tables")]
        return command

    def _environ(self) -> dict[str, str]:
        environ = {**child_environ(self._user_environ), "HOME": str(self._data / "home")}
        for name in (GAPS_OPEN_VARIABLE, SESSION_MIB_VARIABLE):
            if name in self._user_environ:
                environ[name] = self._user_environ[name]
        return environ
