"""What a Spark worker forgets, it can still import."""

import importlib
import sys
import zipfile
import zipimport
from pathlib import Path

import pytest

from bq_harper_assets.sync.spark.tasks import forget_archives


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
