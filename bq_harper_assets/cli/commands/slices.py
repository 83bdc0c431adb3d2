"""`bqh slices` changes the number of slices of a table that is synced."""

import click

from bq_harper_assets.cli.options import PROFILE
from bq_harper_assets.cli.runs.asked_table import contract_named, open_project
from bq_harper_assets.cli.runs.reachability import require_servers
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError


class RunsWait(BqhError):
    """The number of slices cannot change while runs of the table are not over."""

    def __init__(self, contract: TableContract, found: list[str]) -> None:
        super().__init__(
            f"{contract.id} cannot get another number of slices while Dagster has runs of it that "
            f"are not over: {', '.join(found)}. Nothing was changed. Let them end or terminate "
            f"them in the UI, then type: bqh slices set {contract.id} {contract.slices}. If they "
            "died without Dagster's noticing, add --despite-runs: a run that is alive holds a "
            "lease, and no flag goes against that"
        )


@click.group()
def slices() -> None:
    """Change into how many slices a table is cut."""


@slices.command("set")
@click.argument("table")
@click.argument("count", type=click.IntRange(1, 64))
@click.option("--despite-runs", is_flag=True, help="Treat runs that are not over as dead.")
@PROFILE
def set_(table: str, count: int, despite_runs: bool, profile: str | None) -> None:
    """Cut TABLE into COUNT slices, which config/tables.yaml must say too.

    This can be done in the middle of a backfill. It writes no row; the next syncs compare every
    window and write only what differs.
    """
    # Here and not above: dagster takes seconds to import.
    from bq_harper_assets.defs.runs.dead_runs import end_dead_runs
    from bq_harper_assets.defs.runs.launch import project_instance
    from bq_harper_assets.defs.tables.slice_change import note_change, unfinished
    from bq_harper_assets.ledger.ledger import open_ledger

    project = open_project(profile)
    contract = contract_named(project, table)
    if contract.slices != count:
        raise click.UsageError(
            f"config/tables.yaml declares {contract.slices} slices for {contract.id}; write "
            f"slices: {count} there, then type this again"
        )
    with open_ledger(project.ledger.url) as ledger, project_instance(project.root) as instance:
        known = ledger.find_route(contract.id)
        if known is None:
            click.echo(f"{contract.id} was never synced: it starts with {count} slices")
            return
        was = known.facts.slices
        if was == count:
            click.echo(f"{contract.id} has {count} slices already")
            return
        end_dead_runs(instance)
        if not despite_runs and (found := list(unfinished(instance, contract))):
            raise RunsWait(contract, found)
        ledger.change_slices(known, count)
        note_change(instance, contract, was)
    _forget_checkpoints(project, contract, was)
    _tell(contract, was)


def _forget_checkpoints(project: Project, contract: TableContract, was: int) -> None:
    """Deletes checkpoints of slices that are gone: Harper would show them as stuck nodes."""
    from bq_harper_assets.stores.harper.client import HarperClient
    from bq_harper_assets.stores.harper.errors import HarperNotFound
    from bq_harper_assets.stores.harper.mirror.checkpoints import checkpoint_id
    from bq_harper_assets.stores.harper.mirror.tables import CHECKPOINTS

    gone = [checkpoint_id(contract.id, number) for number in range(contract.slices, was)]
    if not gone:
        return
    try:
        require_servers(project, bigquery=False)
        with HarperClient(project.harper) as harper:
            harper.delete(CHECKPOINTS.name, gone)
    except HarperNotFound:
        return
    except BqhError as error:
        click.echo(
            f"warning: Harper's table {CHECKPOINTS.name} still shows {', '.join(gone)}: {error}",
            err=True,
        )


def _tell(contract: TableContract, was: int) -> None:
    from bq_harper_assets.sync.cells.cell import slice_key

    fewer, more = sorted((was, contract.slices))
    keys = ", ".join(slice_key(number) for number in range(fewer, more))
    how = "are new partition keys" if was < contract.slices else "no longer exist as partitions"
    click.echo(f"{contract.id} has {contract.slices} slices now and had {was}: {keys} {how}.")
    click.echo(
        "Every window is compared by the next syncs: rows that are right stay untouched, and none "
        "is written twice."
    )
    click.echo(
        "Earlier materialisations stay in the asset's history. Reload the definitions in the UI, "
        f"then type: bqh sync {contract.id}"
    )
