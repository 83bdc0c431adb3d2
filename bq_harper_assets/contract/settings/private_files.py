"""Files and folders that hold rows of tables can be read by nobody but their owner."""

from contextlib import suppress
from pathlib import Path

FOLDER, FILE = 0o700, 0o600
_OTHERS = 0o077


def make_private_folder(path: Path) -> None:
    """Makes the folder with its parents if it is not there; others cannot reach what is in it."""
    path.mkdir(parents=True, exist_ok=True, mode=FOLDER)
    _tighten(path, FOLDER)


def make_private_file(path: Path) -> None:
    """Makes an empty file if there is none, and else keeps its content."""
    path.touch(mode=FILE, exist_ok=True)
    _tighten(path, FILE)


def tighten_file(path: Path) -> None:
    """Takes a file, if it is there, out of others' reach."""
    if path.exists():
        _tighten(path, FILE)


def _tighten(path: Path, mode: int) -> None:
    if path.stat().st_mode & _OTHERS:
        with suppress(PermissionError):  # another user's: then it is for that user to decide
            path.chmod(mode)
