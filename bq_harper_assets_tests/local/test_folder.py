"""The folder of a stack: a damaged state is told, and nobody else can read what is in it."""

from pathlib import Path

import pytest

from bq_harper_assets.local.errors import StackError
from bq_harper_assets.local.folder import StackFolder
from bq_harper_assets.local.stack import LocalStack
from bq_harper_assets_tests.local.test_stack import remembered


def test_a_damaged_state_is_reported_and_not_guessed(project_root: Path, tmp_path: Path) -> None:
    folder = remembered(tmp_path / "stack")
    folder.state_file.write_text('{"ports": ', encoding="utf-8")
    with pytest.raises(StackError, match=r"stack\.json is damaged.*No data is lost\. Next: "):
        LocalStack(project_root, folder.path).up(print)


def test_nobody_else_can_read_the_folder_of_harpers_data(tmp_path: Path) -> None:
    folder = StackFolder(tmp_path / "stack")
    folder.make()
    assert folder.data.stat().st_mode & 0o777 == 0o700
