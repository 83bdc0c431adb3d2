"""What a task waits for is known to the driver."""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bq_harper_assets.retries.waiting import WAITS
from bq_harper_assets.sync.spark.job_watch import told_while_quiet
from bq_harper_assets.sync.spark.task_waits import (
    FOLDER_SETTING,
    FRESH_S,
    newest_wait,
    noted_for_driver,
    waits_folder,
)


def test_what_a_task_waits_for_is_told_by_the_driver(tmp_path: Path) -> None:
    secrets = tmp_path / ".local" / "task-secrets"
    folder = waits_folder(str(secrets))
    idle: Any = SimpleNamespace(conf={FOLDER_SETTING: str(secrets)})
    with told_while_quiet(idle, "moving"):
        assert [each.stat().st_mode & 0o777 for each in (secrets, folder)] == [0o700] * 2
        assert newest_wait(folder) is None
        with noted_for_driver(folder), noted_for_driver(folder):
            with WAITS.waiting("Harper to answer upsert", "gives up at 12:03", at_once=True):
                pass
            told = newest_wait(folder)
            assert told is not None
            assert told.startswith("a task waits for Harper to answer upsert, since ")
            assert told.endswith("gives up at 12:03; 1 other tasks wait too")
            for file in folder.iterdir():
                os.utime(file, (0, time.time() - FRESH_S - 1))
            assert newest_wait(folder) is None  # it was told again if it went on
        assert list(folder.iterdir()) == []
    assert not folder.exists()
    with noted_for_driver(folder):  # as on another machine than the driver's
        pass
    assert not folder.exists()
