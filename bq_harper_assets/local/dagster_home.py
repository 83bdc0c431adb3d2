"""Where the project's Dagster keeps its files, and the settings that it reads there."""

import os
from collections.abc import Mapping
from pathlib import Path

from bq_harper_assets.contract.settings.private_files import make_private_folder
from bq_harper_assets.contract.settings.root import local_folder

SETTINGS = "dagster.yaml"
OF_DAGSTER = ("storage", "history", "schedules", "logs")  # folders that hold what it keeps


def make_dagster_home(root: Path, environ: Mapping[str, str]) -> Path:
    """DAGSTER_HOME if it is set, else .local/dagster; made, and given the project's settings.

    A place that somebody named may have settings of its own; ours follow those of the project.
    """
    named = environ.get("DAGSTER_HOME")
    home = Path(named or local_folder(root) / "dagster").resolve()
    # Logs and results name rows; of what somebody named and made, that one decides.
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
    draft.replace(settings)  # in one step: a Dagster at work may read it now
