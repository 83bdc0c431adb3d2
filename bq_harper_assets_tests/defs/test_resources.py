"""What runs need, made when it is first asked for."""

from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.activity import now_doing
from bq_harper_assets.defs import resources
from bq_harper_assets.defs.resources import SparkResource


def test_the_start_of_spark_is_what_a_terminal_shows(
    tmp_path: Path, project_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []

    def session(settings: Any, log: Path) -> str:
        shown.append(str(now_doing()))
        return "a session"

    monkeypatch.setattr(resources, "session", session)
    spark = SparkResource(spark_config={}, root=str(project_root), log=str(tmp_path / "spark.log"))
    assert spark.spark_session == "a session"
    assert shown == ["starting Spark"]
