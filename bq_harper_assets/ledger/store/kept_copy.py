"""Keeps a copy of a SQLite ledger beside it before its layout changes, to go back to."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from filecmp import cmp
from itertools import count
from pathlib import Path
from urllib.parse import quote

from bq_harper_assets.contract.settings.private_files import make_private_file
from bq_harper_assets.ledger.errors import LedgerNotWritable


def keep_copy(file: Path, layout: str, address: str) -> Path:
    """Copies the ledger, with what is still in its write-ahead log; gives the file of the copy.

    Its name says which layout it has. No earlier copy is overwritten, and one that is the same is
    kept instead. LedgerNotWritable if there is no room for it.
    """
    partial = file.with_name(f"{file.name}.{layout}.bak.partial")
    try:
        _copy(file, partial)
        for kept in _names(file, layout):
            if not kept.exists():
                partial.replace(kept)
                return kept
            if cmp(partial, kept, shallow=False):
                partial.unlink()
                return kept
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):  # what cannot be written may not be removable either
            partial.unlink(missing_ok=True)
        why = f"its layout has to change, and no copy could be kept beside it before: {error}"
        raise LedgerNotWritable(address, why, is_full=_is_full(error)) from error
    raise AssertionError("names do not run out")


def _copy(file: Path, to: Path) -> None:
    to.unlink(missing_ok=True)
    make_private_file(to)
    only_read = f"file:{quote(str(file.absolute()))}?mode=ro"
    with (
        closing(sqlite3.connect(only_read, uri=True)) as ledger,
        closing(sqlite3.connect(to)) as copy,
    ):
        ledger.backup(copy)
        # A copy is one file: it gets no write-ahead log of its own when somebody looks at it.
        copy.execute("PRAGMA journal_mode=DELETE")
        [[found]] = copy.execute("PRAGMA quick_check(1)")
        if found != "ok":
            raise sqlite3.DatabaseError(f"the copy is damaged: {found}")


def _names(file: Path, layout: str) -> Iterator[Path]:
    """Gives the names that the copy may have; an earlier one may be of the same layout."""
    yield file.with_name(f"{file.name}.{layout}.bak")
    for number in count(2):
        yield file.with_name(f"{file.name}.{layout}.{number}.bak")


def _is_full(error: OSError | sqlite3.Error) -> bool:
    if isinstance(error, OSError):
        return error.errno == errno.ENOSPC
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
