"""Checks whether this machine has what the product needs; it installs nothing, set-up does."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.local.errors import SetupError
from bq_harper_assets.local.java import java_home
from bq_harper_assets.stores.finding import Finding

LOW_SPACE_BYTES = 2 * 1024**3


def check_machine(root: Path, environ: Mapping[str, str]) -> list[Finding]:
    """Checks that there is a Java for Spark, room on the disk, and a folder that can be written."""
    return [_java(root, environ), _disk(root), _writable(local_folder(root))]


def _java(root: Path, environ: Mapping[str, str]) -> Finding:
    try:
        return Finding("machine: Java", "ok", f"Spark will use {java_home(root, environ)}")
    except SetupError as error:
        return Finding("machine: Java", "fail", str(error), "make setup")


def _disk(root: Path) -> Finding:
    free = shutil.disk_usage(root).free
    detail = f"{free / 1024**3:.1f} GB free in {root}"
    if free < LOW_SPACE_BYTES:
        return Finding("machine: disk", "warn", detail, "free some space before a large sync")
    return Finding("machine: disk", "ok", detail)


def _writable(folder: Path) -> Finding:
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK):
        return Finding("machine: files", "ok", f"{folder} can be written")
    return Finding(
        "machine: files",
        "fail",
        f"{folder} cannot be written",
        "change its owner, or set BQH_HOME to a project folder of yours",
    )
