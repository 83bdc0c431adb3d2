"""Checks for room on the disk before something large is written, with the standard library only."""

import shutil
from pathlib import Path

from bq_harper_assets.local.errors import SetupError


def require_free_space(folder: Path, needed: int, again: str) -> None:
    """Raises SetupError early, with both figures, instead of half way with a full disk."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise SetupError(
            f"{folder} has {free / 1024**3:.1f} GB free and {needed / 1024**3:.1f} GB are needed. "
            f"Free some space, or work in a clone on another disk. Next: {again}"
        )
