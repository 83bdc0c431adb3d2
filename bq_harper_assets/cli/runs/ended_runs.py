"""Runs that have ended are told apart from those at work, though both may hold a lease."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from bq_harper_assets.cli.storage_errors import storage_errors
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError

if TYPE_CHECKING:
    from bq_harper_assets.ledger.ledger import Ledger


def ended_runs(
    project: Project, ledger: "Ledger", contracts: Iterable[TableContract]
) -> dict[str, str]:
    """Says what became of each run that holds a lease of these tables and has ended.

    Dagster is asked only if some run holds one.
    """
    routes = [ledger.find_route(contract.id) for contract in contracts]
    held = [
        left
        for route in routes
        if route is not None
        for left in ledger.left_over(route)
        if left.held_until is not None
    ]
    if not held:
        return {}
    # Here and not above: dagster takes seconds to import.
    from sqlalchemy.exc import SQLAlchemyError

    from bq_harper_assets.defs.runs.dead_runs import fates_of_ended_runs
    from bq_harper_assets.defs.runs.launch import instance_if_made

    try:
        with storage_errors(), instance_if_made(project.root) as instance:
            return fates_of_ended_runs(instance, held) if instance else {}
    except (BqhError, SQLAlchemyError) as error:
        why = str(error).splitlines()[0]
        told = "every run that holds a lease counts as being at work"
        click.echo(f"warning: Dagster's storage does not answer, so {told}: {why}", err=True)
        return {}
