"""The stack's Harper is set up in its own folder at the first start, with a password of its own."""

import base64
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from bq_harper_assets.local.errors import StackError
from bq_harper_assets.local.folder import PRIVATE, StackFolder
from bq_harper_assets.local.install import harper_entry
from bq_harper_assets.local.node import node_tools
from bq_harper_assets.local.ports import LOOPBACK, Ports
from bq_harper_assets.local.processes import is_running
from bq_harper_assets.local.servers import (
    Start,
    child_environ,
    http_status,
    last_words,
    log_size,
    wait_until_ready,
    written_since,
)

ADMIN = "admin"
PASSWORD_BYTES = 24
INSTALL_SUCCEEDED = "installation was successful"
LICENCE = (
    "Harper 4.7 is under an evaluation licence (development and testing only); "
    "to use your own Harper set OPERATIONSAPI_URL, OPERATIONSAPI_USER and OPERATIONSAPI_PASS"
)
PRELOAD = Path(__file__).with_name("loopback_only.cjs")


class HarperServer:
    """A Harper server has its own HOME and data; `boot` installs it if it never ran."""

    name = "harper"
    title = "Harper"

    def __init__(
        self,
        project_root: Path,
        folder: StackFolder,
        ports: Ports,
        threads: int,
        environ: Mapping[str, str],
    ) -> None:
        self._project_root = project_root
        self._folder = folder
        self._ports = ports
        self._threads = threads
        self._user_environ = environ
        self._data = folder.data / "harper"
        self._log = folder.logs / "harper.log"

    def boot(self, start: Start) -> Iterator[None]:
        tools = node_tools(self._user_environ)
        command = [str(tools.node), str(harper_entry(self._project_root))]
        if not self._installed.exists():
            yield from self._install(command, start)
        if not self._folder.password_file.is_file():
            raise StackError(
                f"{self._folder.password_file} is gone, and Harper's data cannot be opened "
                "without it. The data is untouched. Next: put the file back, or start afresh: "
                "bqh down --purge"
            )
        # Harper does not run, whatever this file says: the number may be another process's now.
        (self._root / "hdb.pid").unlink(missing_ok=True)
        log_start = log_size(self._log)
        process = start(command, self._environ())
        yield from wait_until_ready(self, process, self._log, log_start)

    def answers(self) -> bool:
        # The login proves that it is this Harper: another one on the same port would answer too.
        if not self._folder.password_file.is_file():
            return False
        login = f"{ADMIN}:{self._folder.password_file.read_text(encoding='ascii')}"
        headers = {
            "Content-Type": "application/json",
            "Authorization": "Basic " + base64.b64encode(login.encode("ascii")).decode("ascii"),
        }
        body = json.dumps({"operation": "user_info"})
        return http_status(self._ports.harper, "POST", "/", body, headers) == 200

    @property
    def _root(self) -> Path:
        return self._data / "root"

    @property
    def _installed(self) -> Path:
        return self._data / "installed"

    def _install(self, command: list[str], start: Start) -> Iterator[None]:
        # Without the stamp no server has run on this data, so there is nothing in it to lose.
        shutil.rmtree(self._data, ignore_errors=True)
        (self._data / "home").mkdir(parents=True, mode=PRIVATE)
        environ = {
            **self._environ(),
            "TC_AGREEMENT": "yes",
            "DEFAULTS_MODE": "prod",
            "HDB_ADMIN_USERNAME": ADMIN,
            "HDB_ADMIN_PASSWORD": _password(self._folder.password_file),
        }
        log_start = log_size(self._log)
        process = start([*command, "install"], environ)
        while is_running(process):
            yield
        if INSTALL_SUCCEEDED not in written_since(self._log, log_start):
            raise StackError(f"Harper's first start failed. {last_words(self._log, log_start)}")
        self._installed.touch()

    def _environ(self) -> dict[str, str]:
        """Makes the environment, which Harper writes into its own configuration at each start."""
        return {
            **child_environ(self._user_environ),
            "HOME": str(self._data / "home"),
            "ROOTPATH": str(self._root),
            "NODE_OPTIONS": f"--require {json.dumps(str(PRELOAD))}",
            "OPERATIONSAPI_NETWORK_PORT": f"{LOOPBACK}:{self._ports.harper}",
            "HTTP_PORT": f"{LOOPBACK}:{self._ports.harper_rest}",
            "THREADS_COUNT": str(self._threads),
            # Without a name the installer asks for one; the others would listen on fixed ports.
            "REPLICATION_HOSTNAME": "localhost",
            "REPLICATION_SECUREPORT": "null",
            "MQTT_NETWORK_PORT": "null",
            "MQTT_NETWORK_SECUREPORT": "null",
            "LOCALSTUDIO_ENABLED": "false",
        }


def _password(file: Path) -> str:
    """Returns the password, which is made once; its file has its mode from the moment it exists."""
    if not file.exists():
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as output:
            output.write(secrets.token_urlsafe(PASSWORD_BYTES))
    return file.read_text(encoding="ascii")
