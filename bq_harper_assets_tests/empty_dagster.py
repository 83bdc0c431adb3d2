"""A Dagster that has recorded nothing is copied: making one takes longer than many tests."""

import atexit
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.local.dagster_home import OF_DAGSTER, SETTINGS
from bq_harper_assets_tests.conftest import PROJECT_ROOT


def empty_dagster(home: Path) -> str:
    """Writes what Dagster keeps in its home once it was opened; returns what DAGSTER_HOME must be.

    The settings are not among it: a project puts its own there.
    """
    home.mkdir(mode=0o700)
    for folder in OF_DAGSTER:
        shutil.copytree(_opened_once() / folder, home / folder)
    return str(home)


@cache
def _opened_once() -> Path:
    root = Path(mkdtemp())
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    shutil.copy(PROJECT_ROOT / SETTINGS, root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", str(root / "dagster"))
        with project_instance(root):
            pass
    return root / "dagster"
