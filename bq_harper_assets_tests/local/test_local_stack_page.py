"""docs/local-stack.md makes a table in the emulator by commands that are run here as they stand."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.stores.bigquery.client import connect
from bq_harper_assets_tests.cli.typed import typed
from bq_harper_assets_tests.conftest import PROJECT_ROOT
from bq_harper_assets_tests.temporary_project import TemporaryProject

PAGE = (PROJECT_ROOT / "docs" / "local-stack.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## A table of your own in the emulator")[2].partition("\n## ")[0]


def block(language: str) -> str:
    [found] = re.findall(rf"^```{language}\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.mark.harper
@pytest.mark.bigquery
def test_a_table_that_the_page_makes_can_be_declared_and_read(
    tmp_path: Path, stack: StackAddresses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BQH_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    root = TemporaryProject.at(tmp_path, PROJECT_ROOT, stack).root
    shutil.copy(PROJECT_ROOT / "config" / "tables.yaml", root / "config")
    first = load_project(root)
    connect(first.bigquery).delete_dataset("shop", delete_contents=True, not_found_ok=True)
    assert f"projects/{first.bigquery.project}\n" in block("sh")

    by_http = block("sh").replace("http://127.0.0.1:9050", stack.bigquery_url)
    for command in (["bash", "-ec", by_http], [sys.executable, "-c", block("python")]):
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode == 0, ran.stderr
    assert "order_id" in ran.stdout

    with (root / "config" / "tables.yaml").open("a", encoding="utf-8") as declared:
        declared.write(block("yaml"))
    findings = json.loads(typed("doctor", "--output", "json").stdout)["findings"]
    [found] = [each for each in findings if each["subject"] == "bigquery: orders"]
    assert found["verdict"] == "ok"
    assert f"{first.bigquery.project}.shop.orders: 3 columns" in found["detail"]
    query = connect(first.bigquery).query("SELECT order_id FROM shop.orders ORDER BY order_id")
    assert [row.order_id for row in query.result()] == [1, 2]
