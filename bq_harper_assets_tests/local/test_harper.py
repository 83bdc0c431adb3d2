"""Harper's data without what is needed to open it."""

from pathlib import Path

import pytest

from bq_harper_assets.local.errors import StackError
from bq_harper_assets.local.stack import LocalStack
from bq_harper_assets_tests.local.test_stack import remembered


def test_harper_data_without_its_password_is_left_alone(project_root: Path, tmp_path: Path) -> None:
    folder = remembered(tmp_path)
    data = folder.data / "harper"
    data.mkdir()
    (data / "installed").touch()
    (data / "precious").touch()
    with pytest.raises(StackError, match=r"admin-password is gone.*bqh down --purge"):
        LocalStack(project_root, tmp_path, preferred={}).up(print, servers=["harper"])
    assert (data / "precious").exists()
