"""Stand-ins for the tools of a machine: a PATH without some, programs that claim a version."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.local.requirements_lock import LOCK, requirement_blocks


def path_without(folder: Path, *names: str) -> str:
    """A PATH with every program of this machine but the named ones."""
    folder.mkdir(parents=True)
    for place in map(Path, os.environ["PATH"].split(os.pathsep)):
        for program in place.iterdir() if place.is_dir() else ():
            link = folder / program.name
            if program.name not in names and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def program(folder: Path, name: str, script: str) -> Path:
    """A program that runs a few lines of shell."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    file.chmod(0o755)
    return file


def java(folder: Path, version: str) -> Path:
    """A Java that only answers what it is; returns its home."""
    lines = f"    java.home = {folder}\\n    java.specification.version = {version}\\n"
    program(folder / "bin", "java", f"printf '{lines}' >&2")
    return folder


def installed_package(project_root: Path, package: str, module: str) -> Path:
    """The folder to import a package from: installed by set-up, or else now, for later runs too."""
    found = importlib.util.find_spec(module)
    if found and found.origin:
        return Path(found.origin).parents[1]
    place = local_folder(project_root) / "software" / "test-wheels" / package
    if not (place / module).is_dir():
        place.mkdir(parents=True, exist_ok=True)
        block = requirement_blocks((project_root / LOCK).read_text(encoding="utf-8"))[package]
        requirement = place.with_suffix(".lock")
        requirement.write_text(block, encoding="utf-8")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        command += ["--require-hashes", "--target", str(place), "--requirement", str(requirement)]
        subprocess.run(command, check=True)
    return place
