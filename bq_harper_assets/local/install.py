"""Installs Harper from npm into the project's own folder; run again, this module does nothing."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from bq_harper_assets.contract.settings.root import find_project_root, local_folder
from bq_harper_assets.errors import BqhError
from bq_harper_assets.local.caches import caches
from bq_harper_assets.local.disk import require_free_space
from bq_harper_assets.local.errors import SET_UP_AGAIN, SetupError
from bq_harper_assets.local.node import node_tools

HARPER_VERSION = "4.7.29"
HARPER_NEEDS_BYTES = 600 * 1024**2  # 245 MB are installed, and npm's cache comes on top
PACKAGE = Path(__file__).with_name("harper_package")
_PACKAGE_LOCK = "package-lock.json"
ENTRY = Path("node_modules") / "harperdb" / "bin" / "harperdb.js"
# Packages are installed as locked and checked against their hashes. `npm ci` would refuse
# the lock: it lacks the native parts for other systems, which npm finds there by exact versions.
# Native parts come built, so no install script has to run.
NPM_OPTIONS = ("install", "--no-save", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund")


def harper_folder(project_root: Path) -> Path:
    """Returns the folder where this version of Harper is or will be."""
    return local_folder(project_root) / "software" / f"harper-{HARPER_VERSION}"


def harper_entry(project_root: Path) -> Path:
    """Returns the script that Node runs; raises SetupError if Harper is not installed."""
    folder = harper_folder(project_root)
    if not _is_installed(folder):
        raise SetupError(
            f"Harper {HARPER_VERSION} is not installed in {folder}. Next: {SET_UP_AGAIN}"
        )
    return folder / ENTRY


def install_harper(
    project_root: Path, say: Callable[[str], None], environ: Mapping[str, str] = os.environ
) -> Path:
    """Installs Harper; its folder appears whole or not at all, even if it is interrupted."""
    folder = harper_folder(project_root)
    if _is_installed(folder):
        return folder
    tools = node_tools(environ)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        require_free_space(folder.parent, HARPER_NEEDS_BYTES, SET_UP_AGAIN)
        draft = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise SetupError(
            f"{folder.parent} cannot be written: {error}. Next: {SET_UP_AGAIN}"
        ) from error
    try:
        for file in ("package.json", _PACKAGE_LOCK):
            shutil.copy(PACKAGE / file, draft / file)
        say(f"installing Harper {HARPER_VERSION} from npm (about 250 MB, a minute or two)")
        kept = {**environ, **caches(project_root, environ)}
        _npm_install((*tools.npm, *NPM_OPTIONS), tools.node.parent, draft, kept)
        shutil.rmtree(folder, ignore_errors=True)
        draft.chmod(0o755)
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    say(f"Harper {HARPER_VERSION} is in {folder}")
    return folder


def _is_installed(folder: Path) -> bool:
    lock = folder / _PACKAGE_LOCK
    return (
        (folder / ENTRY).is_file()
        and lock.is_file()
        and lock.read_bytes() == (PACKAGE / _PACKAGE_LOCK).read_bytes()
    )


def _npm_install(
    command: tuple[str, ...], node_folder: Path, folder: Path, environ: Mapping[str, str]
) -> None:
    # npm starts `node` by name for its own helpers.
    path = f"{node_folder}{os.pathsep}{environ.get('PATH', '')}"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        words = "\n".join(f"  | {line}" for line in done.stderr.strip().splitlines()[-12:])
        raise SetupError(
            f"installing Harper {HARPER_VERSION} failed; nothing was changed. "
            f"{_advice(done.stderr)} Next: {SET_UP_AGAIN}\n{words}"
        )


def _advice(output: str) -> str:
    """Says what a user can do about the failure that npm reports."""
    if "ENOSPC" in output:
        return "The disk is full: free some space."
    if "EINTEGRITY" in output:
        return (
            "A package differs from the locked one: a damaged download, "
            "or a registry that serves other files."
        )
    if any(
        word in output
        for word in ("ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT", "EAI_AGAIN", "CERT", "network")
    ):
        return (
            "npm's registry cannot be reached: check the network, a proxy (HTTPS_PROXY), "
            "or a mirror (NPM_CONFIG_REGISTRY)."
        )
    return "npm's own words are below."


def main() -> None:
    """Installs Harper for the project in the current folder."""
    try:
        install_harper(
            find_project_root(os.environ, Path.cwd()),
            lambda line: print(f"set-up: {line}", flush=True),
        )
    except BqhError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
