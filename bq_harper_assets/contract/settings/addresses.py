"""A file says where the local stack listens: `bqh up` writes it, and the local profile reads it."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

ADDRESSES_FILE = "addresses.json"


class StackAddresses(BaseModel):
    """These are the stack's addresses, whose ports are chosen at the first start and remembered."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    harper_url: str  # http://127.0.0.1:9925, the Operations API
    harper_rest_url: str  # http://127.0.0.1:9926
    harper_user: str
    harper_password_file: Path  # mode 0600; the password itself is nowhere else
    bigquery_url: str  # http://127.0.0.1:9050, the REST API
    bigquery_storage: str  # 127.0.0.1:9060, the gRPC Storage API, plain text
    bigquery_project: str

    def read_password(self) -> str | None:
        """Reads Harper's password; None if its file is gone, empty or no text."""
        try:
            return self.harper_password_file.read_text(encoding="utf-8").strip() or None
        except (OSError, UnicodeDecodeError):
            return None

    def password_refusal(self) -> str | None:
        """Says why the password's file is there and cannot be read; None if it can, or is gone."""
        try:
            self.harper_password_file.open("rb").close()
        except FileNotFoundError:
            return None
        except OSError as error:
            return error.strerror
        return None


def read_addresses(folder: Path) -> StackAddresses | None:
    """Reads the addresses; None if no stack was ever started with its files in `folder`."""
    file = folder / ADDRESSES_FILE
    if not file.is_file():
        return None
    return StackAddresses.model_validate_json(file.read_text(encoding="utf-8"))


def write_addresses(folder: Path, addresses: StackAddresses) -> None:
    """Replaces the file in one step, so that a reader never sees half of it."""
    draft = folder / f"{ADDRESSES_FILE}.new"
    draft.write_text(addresses.model_dump_json(indent=2) + "\n", encoding="utf-8")
    draft.replace(folder / ADDRESSES_FILE)
