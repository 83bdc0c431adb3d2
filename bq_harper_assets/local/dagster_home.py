"""Makes the folder in which the project's Dagster keeps its files and finds its settings."""

import os
from collections.abc import Mapping
from pathlib import Path

from bq_harper_assets.contract.settings.private_files import make_private_folder
from bq_harper_assets.contract.settings.root import local_folder

SETTINGS = "dagster.yaml"
OF_DAGSTER = ("storage", "history", "schedules", "logs")  # Dagster's own folders in its home


def dagster_home(root: Path, environ: Mapping[str, str]) -> Path:
    """Returns DAGSTER_HOME if it is set, else .local/dagster; nothing is made."""
    return Path(environ.get("DAGSTER_HOME") or local_folder(root) / "dagster").resolve()


def make_dagster_home(root: Path, environ: Mapping[str, str]) -> Path:
    """Makes DAGSTER_HOME if it is set, else .local/dagster, with the project's settings in it.

    A folder that the user named may have settings of its own; our own folder gets the project's.
    """
    named = environ.get("DAGSTER_HOME")
    home = dagster_home(root, environ)
    # Logs and results name rows, so the folder is private, unless the user named and made it.
    if not (named and home.is_dir()):
        make_private_folder(home)
    for folder in (home / name for name in OF_DAGSTER):
        if not folder.exists():
            make_private_folder(folder)
    if (root / SETTINGS).exists() and not (named and (home / SETTINGS).exists()):
        _copy_settings(root, home)
    return home


def _copy_settings(root: Path, home: Path) -> None:
    wanted, settings = (root / SETTINGS).read_bytes(), home / SETTINGS
    if settings.exists() and settings.read_bytes() == wanted:
        return
    draft = home / f".{SETTINGS}.{os.getpid()}"
    draft.write_bytes(wanted)
    draft.replace(settings)  # it is replaced in one step, as a running Dagster may read it now
