"""File locks work between processes: the kernel frees them when their owner ends in any way."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def hold(file: Path, note: str) -> str | None:
    """Locks the file until this process ends, even if it becomes another program.

    Returns None if this process has the lock now, else the `note` of the process that has it.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with os.fdopen(descriptor, encoding="utf-8") as taken:
            return taken.read()
    os.set_inheritable(descriptor, True)
    os.truncate(descriptor, 0)
    os.write(descriptor, note.encode("utf-8"))
    return None


@contextmanager
def locked(file: Path, say: Callable[[str], None], while_waiting: str) -> Iterator[None]:
    """Locks the file inside the block; `while_waiting` is said if another process has the lock."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(file, flags, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(while_waiting)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
