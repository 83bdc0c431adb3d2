"""`bqh`: one group; each command lives in its own module and is imported only when it is called."""

import importlib
import sys

import click

from bq_harper_assets.errors import BqhError

# name -> module:attribute. Imported on use: BigQuery's client alone costs seconds.
COMMANDS = {
    "up": "bq_harper_assets.cli.stack:up",
    "down": "bq_harper_assets.cli.stack:down",
    "sync": "bq_harper_assets.cli.sync:sync",
    "verify": "bq_harper_assets.cli.verify:verify",
    "repair": "bq_harper_assets.cli.repair:repair",
    "quarantine": "bq_harper_assets.cli.quarantine:quarantine",
    "slices": "bq_harper_assets.cli.slices:slices",
    "schema": "bq_harper_assets.cli.schema:schema",
    "read": "bq_harper_assets.cli.read:read",
    "adopt": "bq_harper_assets.cli.adopt:adopt",
    "status": "bq_harper_assets.cli.status:status",
    "leases": "bq_harper_assets.cli.leases:leases",
    "demo": "bq_harper_assets.cli.demo:demo",
    "doctor": "bq_harper_assets.cli.doctor:doctor",
    "maritime": "bq_harper_assets.cli.maritime:maritime",
}


class LazyGroup(click.Group):
    """Finds its commands in COMMANDS."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="bq-harper-assets")
def bqh() -> None:
    """Keep Harper tables equal to their BigQuery sources, and prove it."""


def main() -> None:
    """The console script: an expected error is a text and an exit code, never a traceback."""
    try:
        bqh()
    except BqhError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
