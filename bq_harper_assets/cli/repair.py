"""`bqh repair`: what differs is synced again, and nothing else; then it is proved."""

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from bq_harper_assets.cli.proving import proving
from bq_harper_assets.cli.runs import Ran, open_project, run_cells
from bq_harper_assets.cli.sync import MOMENT, contract_named
from bq_harper_assets.cli.verify import as_json, exit_code, prove
from bq_harper_assets.contract.table import TableContract

if TYPE_CHECKING:
    from bq_harper_assets.validation.cell_proof import CellProof


@click.command()
@click.argument("table")
@click.option("--from", "from_", type=MOMENT, help="First window, UTC.  [default: the first]")
@click.option("--to", type=MOMENT, help="End of the last window, UTC.  [default: the last]")
@click.option("--slices", help="Only these, such as 0-1 or 2.  [default: all]")
@click.option("--deep", is_flag=True, help="Hash what Harper holds anew: do not trust its hashes.")
@click.option(
    "--allow-deletes",
    is_flag=True,
    help="Also delete more rows than a run may; those that are gone from BigQuery.",
)
@click.option(
    "--profile", help="The profile of config/profiles.  [default: BQH_PROFILE, else local]"
)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def repair(
    table: str,
    from_: datetime | None,
    to: datetime | None,
    slices: str | None,
    deep: bool,
    allow_deletes: bool,
    profile: str | None,
    output: str,
) -> None:
    """Find what differs of TABLE, sync exactly these cells again, and prove them.

    Exit code 0 if all is equal in the end, 3 if something still differs, 1 if nothing could be
    done or a store did not answer, 2 if the configuration is wrong, 4 if some cells are mended.
    """
    from bq_harper_assets.validation.verdict import ProofStatus

    project = open_project(profile)
    contract = contract_named(project, table)
    ran: Ran | None = None
    after: list[CellProof] = []
    with proving(project, contract, from_, to, slices) as looking:
        before = prove(looking, looking.cells, output, deep=deep, show=True)
        # A sync makes a cell equal to what BigQuery has now, whether or not its past can be had.
        not_equal = {ProofStatus.DIFFERS, ProofStatus.SOURCE_CHANGED}
        wrong = [proof for proof in before if proof.status in not_equal]
        if wrong:
            differing = [proof.cell for proof in wrong]
            what = f"repairing {contract.id}"
            ran = run_cells(
                what,
                project,
                contract,
                differing,
                output,
                allow_deletes=allow_deletes,
                deep=deep,
            )
            after = prove(looking, differing, output, deep=deep, show=True)
    if output == "json":
        click.echo(json.dumps(_told(contract, before, ran, after), indent=2, default=str))
    else:
        click.echo(_in_words(contract, wrong, after))
    if ran and ran.error:
        click.echo(f"error: {ran.error}", err=True)
    sys.exit((ran.exit_code or exit_code(after)) if ran else exit_code(before))


def _in_words(
    contract: TableContract, wrong: "Sequence[CellProof]", after: "Sequence[CellProof]"
) -> str:
    if not wrong:
        return f"nothing was repaired: no cell of {contract.id} differs"
    again = [exit_code([proof]) == 0 for proof in after]
    mended = [proof for proof, is_right in zip(wrong, again, strict=False) if is_right]
    counts = ", ".join(
        f"{sum(getattr(proof, kind) for proof in mended):,} {kind}"
        for kind in ("missing", "changed", "phantom")
    )
    return f"{len(mended):,} of {len(wrong):,} cells of {contract.id} mended: {counts} rows"


def _told(
    contract: TableContract,
    before: "Sequence[CellProof]",
    ran: Ran | None,
    after: "Sequence[CellProof]",
) -> dict[str, Any]:
    return {
        "before": as_json(contract, before),
        "repair": ran.as_json() if ran else None,
        "after": as_json(contract, after) if ran else None,
    }
