"""Stand-ins for the tools of a machine: a PATH without some, programs that claim a version."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.local.locks import locked
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
    place.parent.mkdir(parents=True, exist_ok=True)
    with locked(place.with_suffix(".busy"), print, f"waiting for {package}"):
        if not (place / module).is_dir():
            block = requirement_blocks((project_root / LOCK).read_text(encoding="utf-8"))[package]
            requirement = place.with_suffix(".lock")
            requirement.write_text(block, encoding="utf-8")
            # A run that is killed leaves half a package, which must not be taken for a whole one.
            half = place.with_suffix(".half")
            shutil.rmtree(half, ignore_errors=True)
            shutil.rmtree(place, ignore_errors=True)
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
            command += ["--require-hashes", "--target", str(half)]
            command += ["--requirement", str(requirement)]
            subprocess.run(command, check=True)
            half.rename(place)
    return place
