"""Installers keep what they write in the project's folder, and not in the home folder.

It uses the standard library only: set-up imports it before there are any packages.
"""

from collections.abc import Mapping
from pathlib import Path

from bq_harper_assets.contract.settings.root import local_folder

# If the user has set one of these already, it stays.
_VARIABLES = {"UV_CACHE_DIR": "uv", "PIP_CACHE_DIR": "pip", "npm_config_cache": "npm"}


def caches(project_root: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Returns what to add to the environment of uv, pip and npm; `make clean` deletes it all."""
    folder = local_folder(project_root) / "cache"
    variables = _VARIABLES
    # pip asks `rustc` for its version, and the one of rustup makes this folder if there is none.
    if not Path(environ.get("HOME") or "~", ".rustup").expanduser().is_dir():
        variables = {**_VARIABLES, "RUSTUP_HOME": "rustup"}
    chosen = {name.lower() for name in environ}
    return {
        name: str(folder / tool) for name, tool in variables.items() if name.lower() not in chosen
    }
