"""Processor time of this process and all that it started, from Linux's /proc."""

import os
from collections.abc import Collection
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(leave_out: Collection[int] = ()) -> float:
    """Of the whole family, its dead children too, but those left out."""
    return sum(_cpu(pid) for pid in _family(os.getpid(), leave_out))


def _family(root: int, left_out: Collection[int]) -> list[int]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (fields := _stat(int(folder.name))):
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        if pid not in left_out:
            found.append(pid)
            waiting += children.get(pid, [])
    return found


def _stat(pid: int) -> list[str]:
    """The fields behind the name, which may hold spaces; none if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _cpu(pid: int) -> float:
    return sum(int(ticks) for ticks in _stat(pid)[11:15]) / _TICK
