"""A full disk, and files that cannot be opened or written, are told in words, not as a traceback.

The ledger has errors of its own for this; here is what Dagster's storage, logs and other files of a
command run into.
"""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from bq_harper_assets.errors import BqhError

_FULL = {errno.ENOSPC, errno.EDQUOT}
_READ_ONLY = {errno.EROFS}
_FORBIDDEN = {errno.EACCES, errno.EPERM}
_RIGHTS = "let this user read and write there (the rights of file and folder, or the mount)"


class StorageFault(BqhError):
    """Files of this machine cannot be opened or written, and `cure` says what to do about it."""

    def __init__(self, what: str, cure: str) -> None:
        super().__init__(
            f"{what}. Cells that are committed are safe, and what was not is done again by the next"
            f" sync; a run that was cut off is ended by the next command. Next: {cure}, then type"
            " the same command again"
        )
        self.what = what
        self.cure = cure


@contextmanager
def storage_errors() -> Iterator[None]:
    """Turns such errors of a whole command into StorageFault; all others pass."""
    try:
        yield
    except BqhError:
        raise
    except Exception as error:
        fault = _fault(error)
        if fault is None:
            raise
        raise fault from error


def _fault(error: BaseException) -> StorageFault | None:
    for each in _causes(error):
        why = " ".join(str(each).split())
        is_full = isinstance(each, OSError) and each.errno in _FULL
        is_closed = isinstance(each, OSError) and (
            each.errno in _READ_ONLY
            # Without a file it is about something else, such as a signal to a foreign process.
            or (each.errno in _FORBIDDEN and bool(each.filename))
        )
        if isinstance(each, sqlite3.Error):
            exact = getattr(each, "sqlite_errorcode", 0)
            code = exact & 0xFF
            # Whoever opens a file first, even to read it, makes another beside it.
            is_full = code == sqlite3.SQLITE_FULL or exact == sqlite3.SQLITE_IOERR_SHMSIZE
            is_closed = code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
            why = f"{why}, in Dagster's storage at {os.environ.get('DAGSTER_HOME', '.local')}"
        if is_full:
            return StorageFault(f"a disk is full ({why})", "free some space")
        if is_closed:
            return StorageFault(f"files cannot be opened or written ({why})", _RIGHTS)
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Gives the error and what it came from; SQLAlchemy keeps the driver's own under `orig`."""
    seen: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop(0)
        if each is None or each in seen:
            continue
        seen.append(each)
        yield each
        waiting += [getattr(each, "orig", None), each.__cause__, each.__context__]
