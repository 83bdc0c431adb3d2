"""`bqh status` shows what runs on this machine, and how far each table has come."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from bq_harper_assets.cli.options import OUTPUT, PROFILE, STACK_FOLDER
from bq_harper_assets.cli.output.status_text import table_lines
from bq_harper_assets.cli.output.table_status import TableStatus, table_state
from bq_harper_assets.cli.runs.asked_table import contract_named
from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.settings.root import find_project_root
from bq_harper_assets.errors import BqhError
from bq_harper_assets.local.stack import LocalStack, StackStatus


@click.command()
@click.argument("table", required=False)
@OUTPUT
@PROFILE
@STACK_FOLDER
def status(table: str | None, folder: Path | None, profile: str | None, output: str) -> None:
    """Show what runs, on which ports, where its log is, and how far TABLE or each one is synced.

    With --folder only that stack is shown: the tables belong to the project, not to a stack.
    """
    root = find_project_root(os.environ, Path.cwd())
    servers = LocalStack(root, folder).status()
    tables: list[TableStatus] = []
    problem: BqhError | None = None
    try:
        if folder is None:
            tables = table_states(root, profile, table)
    except BqhError as error:  # the servers are shown all the same
        problem = error
    if output == "json":
        click.echo(_as_json(servers, tables, problem))
    else:
        click.echo("\n".join((*_server_lines(servers), *table_lines(tables))))
        if problem:
            click.echo(f"error: {problem}", err=True)
    if problem:
        sys.exit(problem.exit_code)


def table_states(root: Path, profile: str | None, name: str | None) -> list[TableStatus]:
    """Reads the state of one table or of all from the ledger.

    Harper, if it answers, is only asked whether it is in step with the ledger.
    """
    # Here and not above: a stack is shown without waiting for SQLAlchemy.
    from bq_harper_assets.cli.runs.ended_runs import ended_runs
    from bq_harper_assets.cli.runs.readiness import find_out_of_step
    from bq_harper_assets.ledger.ledger import open_ledger

    project = load_project(root, profile=profile)
    with open_ledger(project.ledger.url) as ledger:
        now = ledger.now()
        wanted = [contract_named(project, name)] if name else project.tables
        ended = ended_runs(project, ledger, wanted)
        states = [table_state(contract, ledger, now, ended) for contract in wanted]
    out_of_step = find_out_of_step(project, wanted)
    return [
        replace(state, out_of_step=str(out_of_step[state.table]))
        if state.table in out_of_step
        else state
        for state in states
    ]


def _server_lines(found: StackStatus) -> Iterator[str]:
    yield f"local stack in {found.folder}"
    for server in found.servers:
        ports = " and ".join(map(str, server.ports))
        where = f", process {server.pid}, ports {ports}" if server.pid else ""
        yield f"  {server.name:<9} {server.state}{where}, log {server.log}"
    if not found.running:
        yield "Start it with: bqh up"


def _as_json(found: StackStatus, tables: list[TableStatus], problem: BqhError | None) -> str:
    shown: dict[str, Any] = {
        "running": found.running,
        **asdict(found),
        "tables": [asdict(table) for table in tables],
        "error": str(problem) if problem else None,
    }
    return json.dumps(shown, indent=2, default=_text)


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
