"""What holds rows of tables is its owner's alone."""

from pathlib import Path

import pytest

from bq_harper_assets.contract.settings.private_files import make_private_file, make_private_folder
from bq_harper_assets.local.dagster_home import OF_DAGSTER, make_dagster_home


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_files_and_folders_are_made_private_and_those_that_are_not_are_tightened(
    tmp_path: Path,
) -> None:
    folder, file = tmp_path / "a" / "b", tmp_path / "file"
    for _ in range(2):
        make_private_folder(folder)
        make_private_file(file)
        assert (mode(folder), mode(file)) == (0o700, 0o600)
        folder.chmod(0o755)
        file.chmod(0o644)
        file.write_text("kept", encoding="utf-8")
    make_private_file(file)
    assert file.read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize("named", [True, False])
def test_dagsters_folder_is_private_unless_somebody_made_it_otherwise(
    tmp_path: Path, named: bool
) -> None:
    home = tmp_path / ".local" / "dagster"
    environ = {"DAGSTER_HOME": str(home)} if named else {}
    assert mode(make_dagster_home(tmp_path, environ)) == 0o700
    home.chmod(0o755)
    assert mode(make_dagster_home(tmp_path, environ)) == (0o755 if named else 0o700)


def test_what_dagster_keeps_in_a_folder_of_somebody_else_is_private(tmp_path: Path) -> None:
    home = tmp_path / "shared"
    (home / "logs").mkdir(parents=True)
    for folder in (home, home / "logs"):
        folder.chmod(0o755)
    make_dagster_home(tmp_path, {"DAGSTER_HOME": str(home)})
    kept = {folder: mode(home / folder) for folder in OF_DAGSTER}
    assert kept == {"storage": 0o700, "history": 0o700, "schedules": 0o700, "logs": 0o755}
