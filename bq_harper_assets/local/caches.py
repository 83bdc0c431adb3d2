"""Where installers keep what they have downloaded: in the project's folder, and not in the home.

Standard library only: set-up imports it before there are any packages.
"""

from collections.abc import Mapping
from pathlib import Path

from bq_harper_assets.contract.settings.root import local_folder

# A folder that somebody has chosen already is theirs to choose.
_VARIABLES = {"UV_CACHE_DIR": "uv", "PIP_CACHE_DIR": "pip", "npm_config_cache": "npm"}


def caches(project_root: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """What to add to the environment of uv, pip and npm; `make clean` deletes these folders."""
    folder = local_folder(project_root) / "cache"
    chosen = {name.lower() for name in environ}
    return {
        name: str(folder / tool) for name, tool in _VARIABLES.items() if name.lower() not in chosen
    }
