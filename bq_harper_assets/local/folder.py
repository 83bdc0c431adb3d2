"""A stack's folder has its files, and remembers its state from one command to the next."""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from bq_harper_assets.contract.settings.addresses import ADDRESSES_FILE
from bq_harper_assets.local.errors import StackError
from bq_harper_assets.local.locks import locked
from bq_harper_assets.local.ports import Ports
from bq_harper_assets.local.processes import Process

PRIVATE = 0o700


class StackState(BaseModel):
    """A stack state says what was started and on which ports, also if the stack is stopped now."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ports: Ports | None = None
    processes: dict[str, Process] = {}


@dataclass(frozen=True)
class StackFolder:
    """A stack folder knows the paths of all files in it; nothing is created before `make`."""

    path: Path

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def password_file(self) -> Path:
        return self.path / "admin-password"

    @property
    def state_file(self) -> Path:
        return self.path / "stack.json"

    def make(self) -> None:
        """Makes the folders; raises StackError if a file is in the way or one cannot be written."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.logs.mkdir(exist_ok=True)
            # A process that can read Harper's folder can talk to it without a password.
            self.data.mkdir(exist_ok=True, mode=PRIVATE)
        except OSError as error:
            raise StackError(
                f"the local stack cannot keep its files in {self.path}: {error}. "
                "Nothing was started. Next: make that place writable, or type: "
                "bqh up --folder ANOTHER_FOLDER"
            ) from error

    def read_state(self) -> StackState:
        """Reads the state, which is empty for a stack that was never started."""
        if not self.state_file.is_file():
            return StackState()
        try:
            return StackState.model_validate_json(self.state_file.read_text(encoding="utf-8"))
        except ValidationError as error:
            raise StackError(
                f"{self.state_file} is damaged, so it is not known what runs. No data is lost. "
                f"Next: end what still runs, delete that file, and type: bqh up\n{error}"
            ) from error

    def write_state(self, state: StackState) -> None:
        """Writes the state; the file is replaced in one step."""
        draft = self.state_file.with_suffix(".new")
        draft.write_text(state.model_dump_json(indent=2) + "\n", encoding="utf-8")
        draft.replace(self.state_file)

    def delete_contents(self) -> None:
        """Deletes all but the lock, which its owner still needs, and what set-up has installed."""
        for place in (self.data, self.logs):
            if place.exists():
                shutil.rmtree(place)
        for file in (self.password_file, self.state_file, self.path / ADDRESSES_FILE):
            file.unlink(missing_ok=True)

    def locked(self, say: Callable[[str], None]) -> AbstractContextManager[None]:
        """Locks the stack, so that one command at a time changes it."""
        waiting = f"waiting for another command to finish with the stack in {self.path}"
        return locked(self.path / "stack.lock", say, waiting)
