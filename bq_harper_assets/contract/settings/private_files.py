"""Files and folders that hold rows of tables: nobody but their owner reads them."""

from contextlib import suppress
from pathlib import Path

FOLDER, FILE = 0o700, 0o600
_OTHERS = 0o077


def make_private_folder(path: Path) -> None:
    """Made with its parents if it is not there; whatever lies in it is out of others' reach."""
    path.mkdir(parents=True, exist_ok=True, mode=FOLDER)
    _tighten(path, FOLDER)


def make_private_file(path: Path) -> None:
    """Made empty if it is not there; its content stays."""
    path.touch(mode=FILE, exist_ok=True)
    _tighten(path, FILE)


def tighten_file(path: Path) -> None:
    """Only if it is there."""
    if path.exists():
        _tighten(path, FILE)


def _tighten(path: Path, mode: int) -> None:
    if path.stat().st_mode & _OTHERS:
        with suppress(PermissionError):  # another user's: then it is for that user to decide
            path.chmod(mode)
