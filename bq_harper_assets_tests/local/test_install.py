"""Harper is installed whole or not at all, and only once."""

import os
import shutil
import socket
from pathlib import Path

import pytest

from bq_harper_assets.local import install
from bq_harper_assets.local.errors import SetupError
from bq_harper_assets.local.install import harper_entry, harper_folder, install_harper
from bq_harper_assets_tests.local.tools import program

INSTALLS = """
mkdir -p node_modules/harperdb/bin && touch node_modules/harperdb/bin/harperdb.js
"""


def machine(folder: Path, npm: str) -> dict[str, str]:
    """An environment whose npm runs the given lines."""
    program(folder / "bin", "node", "echo v20.0.0")
    program(folder / "bin", "npm", npm)
    return {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def test_what_set_up_has_installed_is_not_installed_again(project_root: Path) -> None:
    said: list[str] = []
    folder = install_harper(project_root, said.append, {"PATH": ""})
    assert (folder, said) == (harper_folder(project_root), [])
    assert harper_entry(project_root).is_file()


def test_an_install_ends_with_the_locked_version_and_nothing_else(tmp_path: Path) -> None:
    said: list[str] = []
    folder = install_harper(tmp_path, said.append, machine(tmp_path, INSTALLS))
    assert said == [
        "installing Harper 4.7.29 from npm (about 250 MB, a minute or two)",
        f"Harper 4.7.29 is in {folder}",
    ]
    assert list(folder.parent.iterdir()) == [folder]
    install_harper(tmp_path, said.append, machine(tmp_path, "exit 1"))
    assert len(said) == 2


def test_npm_keeps_what_it_downloads_in_the_projects_folder(tmp_path: Path) -> None:
    says = f'echo "$npm_config_cache" > {tmp_path}/seen\n{INSTALLS}'
    environ = machine(tmp_path, says)
    for chosen in ("npm_config_cache", "NPM_CONFIG_CACHE"):
        environ.pop(chosen, None)
    install_harper(tmp_path, print, environ)
    seen = (tmp_path / "seen").read_text(encoding="utf-8").strip()
    assert seen == str(tmp_path / ".local" / "cache" / "npm")


def test_a_changed_lock_is_installed_over_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = machine(tmp_path, INSTALLS)
    folder = install_harper(tmp_path, print, environ)
    (folder / "of-the-old-one").touch()
    package = shutil.copytree(install.PACKAGE, tmp_path / "package")
    (package / "package-lock.json").write_text("{}", encoding="utf-8")
    monkeypatch.setattr(install, "PACKAGE", package)
    with pytest.raises(SetupError, match="is not installed in"):
        harper_entry(tmp_path)
    install_harper(tmp_path, print, environ)
    assert not (folder / "of-the-old-one").exists()


@pytest.mark.parametrize(
    ("npm_says", "advice"),
    [
        ("npm error code ENOSPC", "The disk is full: free some space."),
        ("npm error code EINTEGRITY", "A package differs from the locked one"),
        ("npm error code ENOTFOUND", "npm's registry cannot be reached"),
        ("npm error something new", "npm's own words are below."),
    ],
)
def test_a_failed_install_leaves_nothing_and_says_what_to_do(
    tmp_path: Path, npm_says: str, advice: str
) -> None:
    environ = machine(tmp_path, f"mkdir node_modules; echo {npm_says} >&2; exit 1")
    with pytest.raises(SetupError) as caught:
        install_harper(tmp_path, print, environ)
    text = str(caught.value)
    assert text.startswith(f"installing Harper 4.7.29 failed; nothing was changed. {advice}")
    assert text.endswith(f"Next: make setup\n  | {npm_says}")
    assert list(harper_folder(tmp_path).parent.iterdir()) == []


def test_a_registry_out_of_reach_is_named(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        environ = {
            **os.environ,
            "NPM_CONFIG_REGISTRY": f"http://127.0.0.1:{nobody.getsockname()[1]}",
            "NPM_CONFIG_CACHE": str(tmp_path / "cache"),
            "NPM_CONFIG_FETCH_RETRIES": "0",
        }
        with pytest.raises(SetupError, match="npm's registry cannot be reached: check the network"):
            install_harper(tmp_path, print, environ)


def test_a_full_disk_is_seen_before_the_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "HARPER_NEEDS_BYTES", 10**18)
    with pytest.raises(SetupError, match=r"GB free and .* GB are needed.* Next: make setup"):
        install_harper(tmp_path, print, machine(tmp_path, "exit 1"))


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / ".local").touch()
    with pytest.raises(SetupError, match=r"\.local/software cannot be written: .*Next: make setup"):
        install_harper(tmp_path, print, machine(tmp_path, INSTALLS))
