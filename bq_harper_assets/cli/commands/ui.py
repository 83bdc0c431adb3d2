"""`bqh ui` starts Dagster's web page, daemon and code server for this project, one of each."""

import os
import signal
import sys
from pathlib import Path

import click

from bq_harper_assets.cli.exit_codes import ExitCode
from bq_harper_assets.cli.options import PORT_NUMBER
from bq_harper_assets.contract.settings.root import find_project_root
from bq_harper_assets.local import processes
from bq_harper_assets.local.dagster_home import make_dagster_home
from bq_harper_assets.local.locks import hold
from bq_harper_assets.local.ports import is_free
from bq_harper_assets.local.processes import Listed

_HOST, _PORT = "127.0.0.1", 3000
UI_LOCK = "ui.lock"
_SERVERS = ("-m dagster_webserver ", "-m dagster._daemon ")
# Dagster would have us use its other command line, which is not part of the product.
_QUIET = "ignore:Function `dev_command` is superseded:FutureWarning"


@click.command()
@click.option("--port", type=PORT_NUMBER, default=_PORT, show_default=True)
def ui(port: int) -> None:
    """Start Dagster's web page and daemon, for as long as this command runs; Ctrl-C ends them.

    If they run already, it says where. Those whose starter was killed are ended first.
    """
    root = find_project_root(os.environ, Path.cwd())
    home = make_dagster_home(root, os.environ)
    url = f"http://{_HOST}:{port}"
    noted = hold(home / UI_LOCK, f"{os.getpid()} {url}")
    running = _started_otherwise(home) if noted is None else noted
    if running is not None:
        pid, _, where = running.partition(" ")  # both empty if it has just begun
        click.echo(
            f"Dagster runs already for {home}: {where or 'it starts now'}. Nothing was started. To"
            f" start it anew, end it first: Ctrl-C in its terminal{pid and f', or kill {pid}'}"
        )
        return
    for orphan in filter(None, (processes.find_process(each.pid) for each in servers_of(home))):
        click.echo(f"ending process {orphan.pid} of a Dagster whose starter was killed")
        processes.stop_alone(orphan)
    if not is_free(port):
        click.echo(
            f"error: port {port} is taken by another program. Nothing was started. Next: end that"
            f" program, or type: bqh ui --port {port + 1}",
            err=True,
        )
        sys.exit(ExitCode.USAGE)
    click.echo(f"Dagster starts at {url}; Ctrl-C ends it")
    _become_dagster(root, home, port)


def _started_otherwise(home: Path) -> str | None:
    """Names process and address of a `dagster dev` that was not started by this command."""
    found = servers_of(home)
    starters = {each.parent for each in found if not is_orphan(each)}
    if not starters:
        return None
    where = filter(None, (address(each.command) for each in found))
    return f"{min(starters)} {next(where, 'its address is not known')}"


def servers_of(home: Path) -> list[Listed]:
    """Lists the web servers and daemons that keep their files in `home`, whoever started them."""
    # Both are told the whole instance on their command lines.
    keeps_files_here = f"base_dir: {home}\\n"
    return [
        each
        for each in processes.listed()
        if keeps_files_here in each.command and any(server in each.command for server in _SERVERS)
    ]


def is_orphan(server: Listed) -> bool:
    """Says whether the `dagster dev` that started the server is gone, so that no Ctrl-C ends it."""
    parents = (each for each in processes.listed() if each.pid == server.parent)
    return not any("dagster" in each.command and " dev" in each.command for each in parents)


def address(command: str) -> str | None:
    """Gives the address of a web server that has this command line; None for a daemon."""
    words = command.split(" ")
    if "--port" not in words or "--host" not in words:
        return None
    return f"http://{words[words.index('--host') + 1]}:{words[words.index('--port') + 1]}"


def _become_dagster(root: Path, home: Path, port: int) -> None:
    """Runs Dagster in place of this process, so that a signal reaches it as it comes."""
    told = ["--host", _HOST, "--port", str(port), "--workspace", str(root / "workspace.yaml")]
    environ = {
        **os.environ,
        "BQH_HOME": str(root),
        "DAGSTER_HOME": str(home),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH")))),
        "PYTHONWARNINGS": ",".join(filter(None, (os.environ.get("PYTHONWARNINGS"), _QUIET))),
    }
    # At its home: in the project it would find our dagster.yaml, and say that it is not used.
    os.chdir(home)
    # What a script starts with & ignores Ctrl-C, and Dagster would then ignore kill as well.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, "-m", "dagster", "dev", *told], environ)
