"""`bqh up` and `bqh down` start and stop the local stack."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from bq_harper_assets.cli.options import PORT_NUMBER, STACK_FOLDER
from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.contract.settings.profile import LOCAL
from bq_harper_assets.contract.settings.root import find_project_root
from bq_harper_assets.errors import BqhError
from bq_harper_assets.local.ports import SERVER_TITLES
from bq_harper_assets.local.stack import LocalStack


@click.command()
@click.option(
    "--harper-port",
    type=PORT_NUMBER,
    help=f"For {SERVER_TITLES['harper']}.  [default: 9925 if free]",
)
@click.option(
    "--harper-rest-port",
    type=PORT_NUMBER,
    help=f"For {SERVER_TITLES['harper_rest']}.  [default: 9926 if free]",
)
@click.option(
    "--bigquery-port",
    type=PORT_NUMBER,
    help=f"For {SERVER_TITLES['bigquery']}.  [default: 9050 if free]",
)
@click.option(
    "--bigquery-storage-port",
    type=PORT_NUMBER,
    help=f"For {SERVER_TITLES['bigquery_storage']}.  [default: 9060 if free]",
)
@click.option(
    "--threads", type=click.IntRange(1), help="Harper's threads.  [default: all cores but one]"
)
@STACK_FOLDER
def up(folder: Path | None, threads: int | None, **ports: int | None) -> None:
    """Start the local stack: a real Harper and a BigQuery emulator, on this machine only.

    What runs already goes on running. Ports are remembered for the next start.
    """
    asked = {name.removesuffix("_port"): port for name, port in ports.items() if port}
    with _progress() as say:
        addresses = _stack(folder, ports=asked, threads=threads).up(say)
    click.echo(_shown(addresses, declared_project(addresses)))


@click.command()
@click.option("--purge", is_flag=True, help="Delete its tables, password and logs too.")
@click.option("--yes", is_flag=True, help="Do not ask before deleting.")
@STACK_FOLDER
def down(folder: Path | None, purge: bool, yes: bool) -> None:
    """Stop the local stack; its data stays for the next start."""
    stack = _stack(folder)
    if not purge:
        stack.down(click.echo)
        return
    files = stack.status().folder
    if not yes:
        click.confirm(f"Delete all tables of the local stack in {files}?", abort=True)
    stack.purge(click.echo)


def _stack(
    folder: Path | None, *, ports: dict[str, int] | None = None, threads: int | None = None
) -> LocalStack:
    root = find_project_root(os.environ, Path.cwd())
    return LocalStack(root, folder, ports=ports, threads=threads)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Prints lines, and on a terminal a spinner below them while there is nothing new to say."""
    if not sys.stdout.isatty():
        yield click.echo
        return
    from rich.console import Console

    console = Console(highlight=False)
    with console.status("the local stack is starting"):
        yield lambda line: console.print(line, markup=False)


def declared_project(addresses: StackAddresses) -> str:
    """Returns the BigQuery project that commands use here, which the emulator need not know."""
    try:
        settings = load_project(find_project_root(os.environ, Path.cwd()), profile=LOCAL).settings
    except BqhError:  # told by the next command that needs the configuration
        return addresses.bigquery_project
    declared = {setting.name: setting for setting in settings}["bigquery.project"]
    return addresses.bigquery_project if declared.source == "default" else declared.value


def _shown(addresses: StackAddresses, project: str) -> str:
    return "\n".join(
        (
            f"Harper    {addresses.harper_url}  (user {addresses.harper_user}, "
            f"password in {addresses.harper_password_file})",
            f"BigQuery  {addresses.bigquery_url}  (project {project}, "
            f"Storage API {addresses.bigquery_storage})",
            "Stop it with: bqh down",
        )
    )
