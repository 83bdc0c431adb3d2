"""An instance that lacks one of our settings is told which one."""

from pathlib import Path

import pytest

from bq_harper_assets.defs.instance_settings import (
    LAUNCHER,
    MONITORING,
    POOLS,
    lacking_at,
)


@pytest.mark.parametrize("lacks", [LAUNCHER, MONITORING, POOLS])
def test_only_the_setting_that_a_dagster_yaml_lacks_is_named(tmp_path: Path, lacks: str) -> None:
    written = [each for each in (LAUNCHER, MONITORING, POOLS) if each != lacks]
    (tmp_path / "dagster.yaml").write_text("\n".join(written), encoding="utf-8")
    assert lacking_at(tmp_path) == [lacks]


def test_a_monitoring_that_fails_runs_which_are_slow_to_begin_is_told(tmp_path: Path) -> None:
    soon = "run_monitoring: {enabled: true, start_timeout_seconds: 180}"
    text = "\n".join([LAUNCHER, soon, POOLS])
    (tmp_path / "dagster.yaml").write_text(text, encoding="utf-8")
    assert lacking_at(tmp_path) == [MONITORING]
