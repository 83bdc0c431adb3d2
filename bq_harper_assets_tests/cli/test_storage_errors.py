"""Dagster's storage on a full or read-only disk: our sentence, not SQLAlchemy's traceback."""

import errno
import shutil
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from bq_harper_assets.cli.storage_errors import StorageFault, storage_errors
from bq_harper_assets_tests.cli.typed import typed
from bq_harper_assets_tests.small_disks import fill, full_disk, read_only
from bq_harper_assets_tests.temporary_project import TemporaryProject

ORDERS = {
    "id": "orders",
    "dataset": "shop",
    "table": "orders",
    "timestampColumn": "ts",
    "targetTable": "Orders",
    "slices": 2,
    "sync": {"startTimestamp": "2026-01-05"},
}


@pytest.fixture
def home(tmp_path: Path, project_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Dagster keeps its files; the ledger lies elsewhere."""
    monkeypatch.setenv("BQH_HOME", str(tmp_path / "project"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    TemporaryProject.at(tmp_path / "project", project_root, None).declare(ORDERS)
    return tmp_path / "dagster"


def test_a_read_only_storage_folder_is_told_in_words(home: Path) -> None:
    with read_only(home):
        ended = typed("slices", "set", "orders", "2")
    assert isinstance(ended.exception, StorageFault), ended.exception
    assert "files cannot be opened or written (" in str(ended.exception)
    assert "Cells that are committed are safe" in str(ended.exception)
    assert str(ended.exception).endswith("then type the same command again")


def test_a_full_storage_folder_is_told_in_words(home: Path, project_root: Path) -> None:
    with full_disk(home, "64k"):
        shutil.copy(project_root / "dagster.yaml", home)
        fill(home)
        ended = typed("slices", "set", "orders", "2")
    assert isinstance(ended.exception, StorageFault), ended.exception
    assert "a disk is full (" in str(ended.exception)
    assert "Next: free some space, then" in str(ended.exception)


def test_what_sqlalchemy_raises_is_told_in_words_too(tmp_path: Path) -> None:
    """As Dagster's storage raises it in the middle of a run."""
    engine = create_engine(f"sqlite:///{tmp_path / 'runs.db'}")
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE events (event TEXT)")
        connection.exec_driver_sql("PRAGMA max_page_count = 3")
        with (
            pytest.raises(StorageFault, match=r"a disk is full \(database or disk is full, in Dag"),
            storage_errors(),
        ):
            connection.exec_driver_sql("INSERT INTO events VALUES (zeroblob(50000))")
        connection.rollback()
        connection.exec_driver_sql("PRAGMA query_only = true")
        with (
            pytest.raises(StorageFault, match=r"opened or written \(attempt to write a readonly"),
            storage_errors(),
        ):
            connection.exec_driver_sql("INSERT INTO events VALUES ('x')")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_what_came_from_a_file_that_cannot_be_written_is_found(number: int) -> None:
    with pytest.raises(StorageFault), storage_errors():
        raise RuntimeError("something of Dagster's") from OSError(number, "no", "events.db")


def test_a_file_that_may_not_be_read_is_named_and_nobody_is_sent_to_a_folder(
    tmp_path: Path,
) -> None:
    file = tmp_path / "tables.yaml"
    with pytest.raises(StorageFault) as told, storage_errors():
        raise PermissionError(errno.EACCES, "Permission denied", str(file))
    assert f"files cannot be opened or written ([Errno 13] Permission denied: '{file}')" in str(
        told.value
    )
    assert "Next: let this user read and write there (the rights of" in str(told.value)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
def test_a_right_that_is_not_about_a_file_is_no_fault_of_the_storage(number: int) -> None:
    """As of a `kill` of somebody else's process."""
    with pytest.raises(PermissionError), storage_errors():
        raise OSError(number, "Operation not permitted")


def test_other_errors_pass_as_they_are() -> None:
    for error in (ValueError("x"), OSError(errno.ECONNREFUSED, "refused"), KeyError("id")):
        with pytest.raises(type(error)), storage_errors():
            raise error
