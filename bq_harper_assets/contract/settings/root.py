"""A project is a folder with config/ in it, and with .local/ for what is made on this machine."""

import os
from collections.abc import Mapping
from pathlib import Path

ROOT_VARIABLE = "BQH_HOME"


def find_project_root(environ: Mapping[str, str], start: Path) -> Path:
    """Returns BQH_HOME, else the nearest folder upwards with a config/tables.yaml, else `start`."""
    if named := environ.get(ROOT_VARIABLE):
        return Path(os.path.expanduser(named)).resolve()
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / "config" / "tables.yaml").is_file():
            return folder
    return start


def local_folder(root: Path) -> Path:
    """Returns the folder of all that the product makes on this machine; to delete it resets all."""
    return root / ".local"
