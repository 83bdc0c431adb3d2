"""`bqh schema accept`: a person has seen what changed, so that no check need tell it longer."""

import getpass

import click

from bq_harper_assets.cli.exit_codes import exit_codes
from bq_harper_assets.cli.schema.table_schema import OUTPUT, PROFILE, asking, tell


@click.command(epilog=exit_codes())
@click.argument("table")
@PROFILE
@OUTPUT
def accept(table: str, profile: str | None, output: str) -> None:
    """Say that you have seen what changed in the columns of TABLE up to the newest version.

    The check schema_drift stops warning of it. What waits for a decision goes on being told, and
    no data is changed.
    """
    from bq_harper_assets.cli.schema.schema_text import change_lines
    from bq_harper_assets.schema.changes import changes_between
    from bq_harper_assets.schema.version import TableVersion
    from bq_harper_assets.sync.schema_sync.version_history import version_named
    from bq_harper_assets.validation.schema_drift import accept_changes, accepted_version

    with asking(table, profile) as asked:
        contract = asked.contract
        known, newest = version_named(asked.ledger, contract, None)
        before = accepted_version(asked.ledger, known)
        _, earlier = version_named(asked.ledger, contract, before)
        first, last = TableVersion.parse(earlier.body), TableVersion.parse(newest.body)
        changes = changes_between(first, last, contract)
        if before < newest.version:
            accept_changes(asked.ledger, known, newest.version, getpass.getuser())
    if output == "json":
        tell(
            contract.id,
            fromVersion=before,
            toVersion=newest.version,
            changes=[change.body() for change in changes],
        )
    elif before == newest.version:
        click.echo(f"{contract.id}: schema version {before} was accepted before; nothing is new")
    else:
        click.echo(f"{contract.id}: accepted from schema version {before} to {newest.version}")
        click.echo("".join(f"{line}\n" for line in change_lines(changes)), nl=False)
        click.echo("Dagster shows it when schema_drift is executed, or at its sensor's next look")
