"""A server that is half started or ends at once."""

from pathlib import Path

import pytest

from bq_harper_assets.local.errors import StackError
from bq_harper_assets.local.folder import StackFolder
from bq_harper_assets.local.processes import Process, is_running
from bq_harper_assets.local.stack import LocalStack
from bq_harper_assets_tests.conftest import environ_without_settings
from bq_harper_assets_tests.local.test_stack import remembered, sleeper

__all__ = ["sleeper"]


@pytest.mark.bigquery
def test_a_half_started_server_is_replaced(
    project_root: Path, tmp_path: Path, sleeper: Process
) -> None:
    folder = remembered(tmp_path / "stack", bigquery=sleeper)
    said: list[str] = []
    stack = LocalStack(project_root, folder.path, preferred={}, environ=environ_without_settings())
    try:
        stack.up(said.append, servers=["bigquery"])
        assert not is_running(sleeper)
        assert said[0] == "the BigQuery emulator runs but does not answer; it is started again"
        assert stack.status().servers[1].state == "running"
    finally:
        stack.down(print)


@pytest.mark.bigquery
def test_a_server_that_ends_while_starting_is_quoted(project_root: Path, tmp_path: Path) -> None:
    environ = {**environ_without_settings(), "BQH_EMULATOR_GAPS_OPEN": "nonsense"}
    stack = LocalStack(project_root, tmp_path, preferred={}, environ=environ)
    with pytest.raises(StackError) as caught:
        stack.up(print, servers=["bigquery"])
    text = str(caught.value)
    assert text.startswith(
        "the BigQuery emulator ended while it was starting. Data is safe. Its log is "
        f"{tmp_path}/logs/bigquery.log. Next, with the cause removed: bqh up\n  | error: "
    )
    assert "names ['nonsense']" in text
    assert StackFolder(tmp_path).read_state().processes == {}
