"""`bqh status`: what runs on this machine, and how far each table has come."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bq_harper_assets.cli.stack import FOLDER
from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.root import find_project_root
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.local.stack import LocalStack, StackStatus

if TYPE_CHECKING:
    from bq_harper_assets.ledger.ledger import Ledger

SYNCED, REFUSED = "synced", "refused"


@dataclass(frozen=True)
class Held:
    """A slice that a run may write now."""

    slice: int
    owner: str
    until: datetime


@dataclass(frozen=True)
class TableStatus:
    """How far one table has come, as the ledger knows it; a table never synced has no times."""

    table: str
    target: str
    cells_due: int  # of closed windows
    cells: dict[str, int] = field(default_factory=dict)  # by state
    synced_until: datetime | None = None  # every cell up to here
    lag_s: float | None = None
    phase: str = "initial"
    batch_size: int = 0  # rows per request
    windows_per_run: int = 0
    next_poll_within_s: float | None = None  # if its sensors are on
    due: dict[str, int] = field(default_factory=dict)  # cells of closed windows, by reason
    rows: int = 0
    quarantined: int = 0
    newest_t: datetime | None = None
    leases: tuple[Held, ...] = ()


@click.command()
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--profile", help="The profile of config/profiles.  [default: BQH_PROFILE, else local]"
)
@FOLDER
def status(folder: Path | None, profile: str | None, output: str) -> None:
    """Show what runs, on which ports, where its log is, and how far each table is synced.

    With --folder only that stack is shown: the tables belong to the project, not to a stack.
    """
    root = find_project_root(os.environ, Path.cwd())
    servers = LocalStack(root, folder).status()
    tables: list[TableStatus] = []
    problem: BqhError | None = None
    try:
        if folder is None:
            tables = table_states(root, profile)
    except BqhError as error:  # the servers are shown all the same
        problem = error
    if output == "json":
        click.echo(_as_json(servers, tables, problem))
    else:
        click.echo("\n".join((*_server_lines(servers), *_table_lines(tables))))
        if problem:
            click.echo(f"error: {problem}", err=True)
    if problem:
        sys.exit(problem.exit_code)


def table_states(root: Path, profile: str | None) -> list[TableStatus]:
    """Of every contract, from the ledger alone: neither BigQuery nor Harper is asked."""
    # Here and not above: a stack is shown without waiting for SQLAlchemy.
    from bq_harper_assets.ledger.ledger import open_ledger

    project = load_project(root, profile=profile)
    with open_ledger(project.ledger.url) as ledger:
        now = ledger.now()
        return [table_state(contract, ledger, now) for contract in project.tables]


def table_state(contract: TableContract, ledger: "Ledger", now: datetime) -> TableStatus:
    """How far it is at `now`."""
    from bq_harper_assets.sync.pace import WINDOWS_PER_RUN, poll_delay
    from bq_harper_assets.sync.phases import phase_of, rows_per_request
    from bq_harper_assets.sync.revisit import standing
    from bq_harper_assets.sync.windows import windows_between

    declared = contract.sync.start_timestamp
    start = declared or ledger.start_of(contract.id)
    table = ledger.find_table(contract.id)
    closed = now - contract.safety_lag
    windows = list(windows_between(start, closed, contract.window)) if start else []
    due = sum(window.end <= closed for window in windows) * contract.slices
    if table is None or not windows:
        return TableStatus(contract.id, contract.target_table, due)
    progress = ledger.progress(table, windows[0].start)
    lag = max(now - progress.synced_until, timedelta(0))
    phase = phase_of(lag, contract.sync)
    stands = standing(ledger, contract, windows[0].start, now)
    return TableStatus(
        table=contract.id,
        target=contract.target_table,
        cells={state.value: count for state, count in progress.cells.items()},
        cells_due=due,
        synced_until=progress.synced_until,
        lag_s=lag.total_seconds(),
        phase=phase.value,
        batch_size=rows_per_request(phase, contract.sync),
        windows_per_run=WINDOWS_PER_RUN[phase],
        next_poll_within_s=poll_delay(phase, contract.sync).total_seconds(),
        due={reason.value: count for reason, count in stands.by_reason.items()},
        rows=progress.rows,
        quarantined=progress.quarantined,
        newest_t=progress.newest_t,
        leases=tuple(
            Held(lease.slice, lease.owner, lease.expires_at)
            for lease in ledger.leases(table)
            if lease.is_live and lease.owner and lease.expires_at
        ),
    )


def _server_lines(found: StackStatus) -> Iterator[str]:
    yield f"local stack in {found.folder}"
    for server in found.servers:
        ports = " and ".join(map(str, server.ports))
        where = f", process {server.pid}, ports {ports}" if server.pid else ""
        yield f"  {server.name:<9} {server.state}{where}, log {server.log}"
    if not found.running:
        yield "Start it with: bqh up"


def _table_lines(tables: list[TableStatus]) -> Iterator[str]:
    for table in tables:
        yield f"{table.table} -> {table.target}"
        if table.newest_t is None or table.synced_until is None or table.lag_s is None:
            yield f"  nothing synced yet. Start with: bqh sync {table.table}"
        else:
            synced = table.cells.get(SYNCED, 0)
            behind = timedelta(seconds=int(table.lag_s))
            yield (
                f"  {synced:,} of {table.cells_due:,} cells synced, all until "
                f"{table.synced_until:%F %H:%M} UTC: {behind} behind, phase {table.phase}"
            )
            yield (
                f"  {table.rows:,} rows, {table.quarantined:,} quarantined, "
                f"as BigQuery was at {table.newest_t:%F %T} UTC"
            )
            yield (
                f"  {table.batch_size:,} rows per request, {table.windows_per_run} windows per "
                f"run; its sensors look every {table.next_poll_within_s:g} s while they are on"
            )
            if table.due:
                due = ", ".join(f"{count:,} {reason}" for reason, count in table.due.items())
                yield f"  cells due: {due}"
        for state, count in table.cells.items():
            if state != SYNCED:
                allow = " --allow-deletes, if BigQuery is right" if state == REFUSED else ""
                yield f"  {count:,} cells are {state}: bqh sync {table.table}{allow}"
        for lease in table.leases:
            yield f"  slice {lease.slice} is held by run {lease.owner} until {lease.until:%T} UTC"


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
