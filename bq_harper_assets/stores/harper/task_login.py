"""A task logs in to Harper with secrets from a file; what is sent to it only names that file.

PySpark writes a closure above 1 MB to a temporary file, and a cluster sends it over the network.
"""

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.stores.harper.errors import NoPassword, PasswordNotWritten
from bq_harper_assets.sync.spark.task_waits import (
    FOLDER_SETTING,
    PRIVATE_FOLDER,
    tasks_folder,
    waits_folder,
)

PASSWORD_VARIABLE = "OPERATIONSAPI_PASS"


@dataclass(frozen=True)
class TaskLogin:
    """A task is sent the connection to Harper without its secrets, and the file that has them."""

    without_secrets: HarperConnection
    file: Path
    waits: Path | None = None  # where tasks on the driver's machine note what they wait for

    def connection(self) -> HarperConnection:
        """Returns the connection with this machine's secrets; raises NoPassword without any."""
        try:
            secrets = json.loads(self.file.read_text(encoding="utf-8"))
        except OSError as error:
            if PASSWORD_VARIABLE not in os.environ:
                raise NoPassword(self._no_password(error)) from None
            secrets = {"password": os.environ[PASSWORD_VARIABLE], "token": None}
        token = secrets["token"]
        return self.without_secrets.model_copy(
            update={
                "password": SecretStr(secrets["password"]),
                "token": None if token is None else SecretStr(token),
            }
        )

    def _no_password(self, error: OSError) -> str:
        is_missing = isinstance(error, FileNotFoundError)
        found = (
            f"on its machine there is neither the file {self.file} nor"
            if is_missing
            else f"it cannot read the file {self.file} ({error.strerror}), and its machine does"
            " not have"
        )
        return (
            f"a task cannot log in to Harper at {self.without_secrets.url}: {found} the variable"
            f" {PASSWORD_VARIABLE}. Nothing was sent. Set {PASSWORD_VARIABLE} for Spark's"
            f" executors, or {FOLDER_SETTING} to a folder that they and the driver share and may"
            " read"
        )


def task_login(connection: HarperConnection, named: str | None = None) -> TaskLogin:
    """Writes the secrets for tasks of this machine, into the named folder or one of its own."""
    folder = tasks_folder(named)
    name = hashlib.sha256(f"{connection.url}\n{connection.user}".encode()).hexdigest()[:16]
    file = folder / f"harper-{name}.json"
    secrets = {
        "password": connection.password.get_secret_value(),
        "token": connection.token.get_secret_value() if connection.token else None,
    }
    try:
        _write(file, json.dumps(secrets))
    except OSError as error:
        raise PasswordNotWritten(
            f"the login of Spark's tasks could not be written to {file}: {error.strerror}. Nothing"
            f" was sent. Set {FOLDER_SETTING} to a folder that the driver may write to"
        ) from None
    hidden = connection.model_copy(update={"password": SecretStr(""), "token": None})
    return TaskLogin(hidden, file, waits_folder(named))


def _write(file: Path, text: str) -> None:
    """Writes the file in one step; nobody else can read it at any moment."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
    if file.exists() and file.read_text(encoding="utf-8") == text:
        return
    handle, draft = tempfile.mkstemp(dir=file.parent)  # mkstemp() makes it 0600
    with os.fdopen(handle, "w", encoding="utf-8") as opened:
        opened.write(text)
    os.replace(draft, file)
