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


class StorageFault(BqhError):
    """Files of this machine cannot be opened or written."""


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
            return _told("a disk is full", why, "Free some space")
        if is_closed:
            return _told(
                "files cannot be opened or written",
                why,
                "Give this user the right to (the file's and the folder's rights, the mount)",
            )
    return None


def _told(what: str, why: str, cure: str) -> StorageFault:
    return StorageFault(
        f"{what} ({why}). Cells that are committed are safe, and what was not is done again by the"
        f" next sync; a run that was cut off is ended by the next command. {cure}, then type the"
        " same command again"
    )


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
