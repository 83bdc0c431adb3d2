"""Finds the machine's own Java and Node, with the standard library only: set-up runs it first."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

JAVA_NEEDED = 17
NODE_NEEDED = 20
_ASKING_SECONDS = 30


@dataclass(frozen=True)
class Java:
    """This is one Java of the machine; JAVA_HOME must be `home` to get it."""

    executable: Path
    home: Path
    version: int


@dataclass(frozen=True)
class Node:
    """This is one Node of the machine; some systems package npm apart from it."""

    executable: Path
    version: int
    npm: Path | None


def find_java(environ: Mapping[str, str]) -> Java | None:
    """Returns the Java of JAVA_HOME, else of PATH; None if neither is new enough for Spark."""
    return next((java for java in javas(environ) if java.version >= JAVA_NEEDED), None)


def find_node(environ: Mapping[str, str]) -> Node | None:
    """Returns the Node on PATH; None if it is missing, too old for Harper, or without npm."""
    node = any_node(environ)
    return node if node and node.version >= NODE_NEEDED and node.npm else None


def javas(environ: Mapping[str, str]) -> list[Java]:
    """Returns every Java that answers, in the order of preference, whatever its version."""
    found: list[Java | None] = []
    if named := environ.get("JAVA_HOME"):
        # JAVA_HOME itself counts, not the home it reports: a wrapper reports that of another Java.
        found.append(_ask_java(Path(named) / "bin" / "java", Path(named)))
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        found.append(_ask_java(Path(on_path), None))
    return [java for java in found if java]


def any_node(environ: Mapping[str, str]) -> Node | None:
    """Returns the Node on PATH, whatever its version."""
    path = environ.get("PATH", "")
    on_path = shutil.which("node", path=path)
    if not on_path:
        return None
    match = re.match(r"v(\d+)\.", _answer([on_path, "--version"]))
    npm = shutil.which("npm", path=path)
    return Node(Path(on_path), int(match[1]), Path(npm) if npm else None) if match else None


def _ask_java(executable: Path, home: Path | None) -> Java | None:
    try:
        changed = executable.stat().st_mtime_ns
    except OSError:
        return None
    found = _asked_once(executable, home, changed)
    if found is None:
        _asked_once.cache_clear()  # it was perhaps only too slow
    return found


@cache  # it starts a Java, and each run of a process asks
def _asked_once(executable: Path, home: Path | None, changed: int) -> Java | None:
    # One call gives both; the home of /usr/bin/java cannot be derived from its path.
    answer = _answer([str(executable), "-XshowSettings:properties", "-version"])
    told = re.search(r"^\s*java\.home = (.+)$", answer, re.MULTILINE)
    # Java 8 calls itself 1.8.
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", answer, re.MULTILINE)
    if not told or not version:
        return None
    return Java(executable, home or Path(told[1].strip()), int(version[1]))


def _answer(command: list[str]) -> str:
    """Returns what the command prints on either stream; nothing if it cannot run or fails."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_ASKING_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
