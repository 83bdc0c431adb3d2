"""What a Spark worker does before each task, so that a small one takes little time."""

import gc
import importlib
import sys
import zipfile
import zipimport
from collections.abc import Iterator
from pathlib import Path

import pytest

from bq_harper_assets.sync.spark import tasks
from bq_harper_assets.sync.spark.tasks import forget_archives, spare_modules


def test_forgotten_archives_are_not_read_again_and_can_still_be_imported_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "some.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("first_of_some.py", "NUMBER = 1")
        file.writestr("second_of_some.py", "NUMBER = 2")
    monkeypatch.syspath_prepend(str(archive))
    assert importlib.import_module("first_of_some").NUMBER == 1
    assert isinstance(sys.path_importer_cache[str(archive)], zipimport.zipimporter)

    forget_archives()

    assert str(archive) not in sys.path_importer_cache
    assert importlib.import_module("second_of_some").NUMBER == 2


@pytest.fixture
def as_a_new_worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tasks, "_modules_spared", 0)
    gc.unfreeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("as_a_new_worker")
def test_a_collection_passes_over_modules_and_not_over_what_later_tasks_leave_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loaded_by_a_task.py").write_text("HELD = [[] for _ in range(1000)]", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    spare_modules()  # the first task begins, and loads a module
    held = importlib.import_module("loaded_by_a_task").HELD
    assert any(each is held for each in gc.get_objects())
    spare_modules()  # the second
    looked_at = gc.get_objects()
    assert not any(each is held for each in looked_at)
    assert len(looked_at) < 1000

    left_behind: list[object] = []
    left_behind.append(left_behind)
    spare_modules()  # the third: no module has come
    assert any(each is left_behind for each in gc.get_objects())
