"""`bqh` is one group of commands, whose modules are imported only when they are called."""

import importlib
import logging
import os
import signal
import sys
from typing import Any

import click

from bq_harper_assets.cli.exit_codes import ExitCode, all_exit_codes, exit_codes
from bq_harper_assets.cli.storage_errors import storage_errors
from bq_harper_assets.errors import BqhError, Stopped
from bq_harper_assets.retries.waiting import TERMINAL, WAITS

# name -> module:attribute. Imported on use: BigQuery's client alone costs seconds.
COMMANDS = {
    "up": "bq_harper_assets.cli.commands.stack:up",
    "down": "bq_harper_assets.cli.commands.stack:down",
    "ui": "bq_harper_assets.cli.commands.ui:ui",
    "sync": "bq_harper_assets.cli.commands.sync:sync",
    "verify": "bq_harper_assets.cli.commands.verify:verify",
    "repair": "bq_harper_assets.cli.commands.repair:repair",
    "reconcile": "bq_harper_assets.cli.commands.reconcile:reconcile",
    "quarantine": "bq_harper_assets.cli.commands.quarantine:quarantine",
    "slices": "bq_harper_assets.cli.commands.slices:slices",
    "schema": "bq_harper_assets.cli.schema.group:schema",
    "read": "bq_harper_assets.cli.commands.read:read",
    "adopt": "bq_harper_assets.cli.commands.adopt:adopt",
    "status": "bq_harper_assets.cli.commands.status:status",
    "leases": "bq_harper_assets.cli.commands.leases:leases",
    "demo": "bq_harper_assets.cli.commands.demo:demo",
    "doctor": "bq_harper_assets.cli.commands.doctor:doctor",
    "maritime": "bq_harper_assets.cli.commands.maritime:maritime",
}


class LazyGroup(click.Group):
    """This group finds its commands in COMMANDS."""

    def invoke(self, ctx: click.Context) -> Any:
        # A command that draws on the terminal speaks there itself, in place of this.
        with storage_errors(), WAITS.listen(_say, TERMINAL):
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        _name_exit_codes(command)
        return command


def _say(line: str) -> None:
    """Writes to stderr, because programs read one document on stdout."""
    click.echo(line, err=True)


def _name_exit_codes(command: click.Command) -> None:
    """Adds the codes of every command to the help of those that name none themselves."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            _name_exit_codes(each)
    elif not command.epilog:
        command.epilog = exit_codes()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=all_exit_codes(),
)
@click.version_option(package_name="bq-harper-assets")
def bqh() -> None:
    """Keep Harper tables equal to their BigQuery sources, and prove it."""


def main() -> None:
    """Runs `bqh`; an expected error gives a text and an exit code, never a traceback."""
    # Without a handler Python prints what libraries log: each retry beside our own sentence of the
    # wait, and py4j's traceback of a Java process that died.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        code = bqh.main(standalone_mode=False)
    except Stopped as stopped:
        click.echo(str(stopped), err=True)
        sys.stdout.flush()
        # At once: a thread that waits for a store would keep the process for minutes.
        os._exit(stopped.exit_code)
    except BqhError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort as aborted:
        click.echo("stopped", err=True)
        by_signal = isinstance(aborted.__cause__, KeyboardInterrupt)
        sys.exit(128 + signal.SIGINT if by_signal else ExitCode.ERROR)
    sys.exit(code if isinstance(code, int) else ExitCode.DONE)
