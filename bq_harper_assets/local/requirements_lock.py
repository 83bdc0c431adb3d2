"""requirements.lock lists every package with its version and hashes, and no download address.

It is written and checked with `uv pip compile`, by running this module with `write` or `check`. It
uses the standard library only, because set-up reads the lock before anything is installed.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from bq_harper_assets.local.caches import caches

LOCK = "requirements.lock"
_REQUIREMENT = re.compile(
    r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)(?P<rest>.*)$"
)


def requirement_blocks(lock: str) -> dict[str, str]:
    """Returns each package's lines of the lock; entries per Python version stay together."""
    blocks: dict[str, str] = {}
    name = ""
    for line in lock.splitlines(keepends=True):
        if match := _REQUIREMENT.match(line):
            name = match["name"].lower()
        if name and not line.startswith("#"):
            blocks[name] = blocks.get(name, "") + line
    return blocks


def pins(lock: str) -> set[str]:
    """Returns `name==version ; marker` of every entry, on which two locks must agree."""
    found = set()
    for line in lock.splitlines():
        if match := _REQUIREMENT.match(line):
            marker = match["rest"].rstrip("\\ ").strip()
            found.add(f"{match['name'].lower()}=={match['version']} {marker}".strip())
    return found


def problems_of(lock: str, wanted: set[str]) -> list[str]:
    """Lists what is wrong with a lock whose pins should be `wanted`."""
    problems = [f"pyproject.toml needs {pin}" for pin in sorted(wanted - pins(lock))]
    problems += [f"pyproject.toml does not need {pin}" for pin in sorted(pins(lock) - wanted)]
    problems += [
        f"{name} has no hash"
        for name, block in requirement_blocks(lock).items()
        if "--hash=" not in block
    ]
    problems += [
        f"line {number} holds an address: {line.strip()}"
        for number, line in enumerate(lock.splitlines(), 1)
        if "://" in line or line.startswith(("-i ", "--index", "--extra-index", "--find-links"))
    ]
    return problems


def _compile(root: Path, output: Path, *options: str) -> None:
    """Resolves pyproject.toml; uv keeps the versions it finds in `output` if they still fit."""
    command = [
        str(Path(sys.executable).with_name("uv")), "pip", "compile", str(root / "pyproject.toml"),
        "--all-extras", "--universal", "--python-version", "3.11", "--no-header", "--quiet",
        "--no-emit-index-url", "--no-emit-find-links", "--output-file", str(output), *options,
    ]  # fmt: skip
    environ = {**os.environ, **caches(root, os.environ)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"error: pyproject.toml cannot be resolved:\n{done.stderr.strip()}")


def write(root: Path) -> None:
    """Resolves pyproject.toml again, with hashes."""
    _compile(root, root / LOCK, "--generate-hashes")


def check(root: Path) -> list[str]:
    """Compares versions and markers, not hashes: an index may add files to a version."""
    lock = (root / LOCK).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / LOCK
        fresh.write_text("\n".join(sorted(pins(lock))) + "\n", encoding="utf-8")
        _compile(root, fresh)
        return problems_of(lock, pins(fresh.read_text(encoding="utf-8")))


def main() -> None:
    """Runs `write` or `check` for the project in the current folder."""
    root = Path.cwd()
    if sys.argv[1:] == ["write"]:
        write(root)
    elif sys.argv[1:] == ["check"]:
        if found := check(root):
            sys.exit(
                "error: requirements.lock is not in step:\n  "
                + "\n  ".join(found)
                + "\nRun: make lock"
            )
        print(f"{LOCK} is in step with pyproject.toml")
    else:
        sys.exit("usage: python -m bq_harper_assets.local.requirements_lock write|check")


if __name__ == "__main__":
    main()
