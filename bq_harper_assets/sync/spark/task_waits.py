"""The driver reports what tasks wait for: each task writes its newest line into its own file.

This works for tasks on the driver's machine. Elsewhere the folder does not exist, and only Spark's
log has the retries of a task.
"""

import atexit
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from bq_harper_assets.retries.waiting import TOLD_AGAIN_AFTER_S, WAITS

FOLDER_SETTING = "spark.bqh.secrets"  # the folder of logins and waits of tasks
PRIVATE_FOLDER = 0o700
FRESH_S = TOLD_AGAIN_AFTER_S + 5  # a wait that goes on is written again within this time


@contextmanager
def noted_for_driver(folder: Path | None) -> Iterator[None]:
    """Notes what a task waits for in its file, as long as the block runs."""
    if folder is None or not folder.is_dir():
        yield
        return
    file = folder / f"{os.getpid()}-{uuid.uuid4().hex}"

    def note(line: str) -> None:
        file.write_text(line, encoding="utf-8")

    try:
        with WAITS.listen(note):
            yield
    finally:
        with suppress(OSError):
            file.unlink()


@contextmanager
def told_by_driver(folder: Path) -> Iterator[None]:
    """Reports the waits that tasks of the block's Spark jobs note as the driver's own waits."""
    with suppress(OSError):  # a full disk must not stop the jobs
        # The parent is made first: a parent that mkdir() makes on the way does not get the mode.
        for each in (folder.parent, folder):
            each.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
    try:
        with WAITS.told_by(lambda now: newest_wait(folder)):
            yield
    finally:
        with suppress(OSError):  # another block's tasks may still use it
            folder.rmdir()


def newest_wait(folder: Path) -> str | None:
    """Returns the line written last, and how many other tasks wait; None if no task waits."""
    lines: list[tuple[float, str]] = []
    with suppress(OSError):  # a task that ends removes its file
        for file in folder.iterdir():
            written_at = file.stat().st_mtime
            if time.time() - written_at < FRESH_S:
                lines.append((written_at, file.read_text(encoding="utf-8")))
    if not any(text for _, text in lines):
        return None
    newest = max(line for line in lines if line[1])[1]
    others = f"; {len(lines) - 1} other tasks wait too" if len(lines) > 1 else ""
    return f"a task {newest}{others}"


def tasks_folder(named: str | None) -> Path:
    """Returns the folder that tasks of this machine and their driver share."""
    return Path(named) if named else _own_folder()


def waits_folder(named: str | None) -> Path:
    """Returns the folder for the waits of this process's tasks; other runs have tasks too."""
    return tasks_folder(named) / f"waits-{os.getpid()}"


@cache
def _own_folder() -> Path:
    """Makes a temporary folder of this process, for runs outside of a project."""
    folder = Path(tempfile.mkdtemp(prefix="bqh-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
