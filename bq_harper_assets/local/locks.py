"""File locks between processes: the kernel frees them when their holder ends, however it ends."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def hold(file: Path, note: str) -> str | None:
    """Held until this process ends, also if it becomes another program; `note` is for others.

    None if it is held now; else what its holder has noted.
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
    """Held inside the block; `while_waiting` is said if somebody else holds it now."""
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
