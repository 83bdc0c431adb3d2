"""Disks that are really full or really cannot be written, also for root."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def full_disk(folder: Path, size: str = "256k") -> Iterator[Path]:
    """A file system of its own with no room left; skipped where no disk may be mounted."""
    folder.mkdir(parents=True, exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True, timeout=60)


def fill(folder: Path) -> None:
    """Until nothing more goes in."""
    with (folder / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return


@contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """The folder as it is, and nothing in it can be changed."""
    folder.mkdir(parents=True, exist_ok=True)
    _mount("--bind", str(folder), str(folder))
    try:
        _mount("-o", "remount,ro,bind", str(folder))
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True, timeout=60)


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, timeout=60)
    if done.returncode:
        pytest.skip(f"a disk can only be mounted by root: {done.stderr.strip()}")
