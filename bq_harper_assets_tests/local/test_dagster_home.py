"""What Dagster keeps on this machine is its owner's alone."""

from pathlib import Path

import pytest

from bq_harper_assets.local.dagster_home import OF_DAGSTER, make_dagster_home
from bq_harper_assets_tests.contract.settings.test_private_files import mode


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
