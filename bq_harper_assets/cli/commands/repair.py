"""`bqh repair`: what differs is synced again, and nothing else; then it is proved."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from bq_harper_assets.cli.commands.sync import MOMENT, contract_named
from bq_harper_assets.cli.commands.verify import EXITS, equality_json, prove
from bq_harper_assets.cli.output.equality import Equality, Unseen
from bq_harper_assets.cli.output.windows_text import some_windows
from bq_harper_assets.cli.runs.proof_runs import proving
from bq_harper_assets.cli.runs.ranged_runs import Ran, open_project, run_cells

if TYPE_CHECKING:
    from bq_harper_assets.validation.proof.cell_proof import CellProof


@click.command(epilog=EXITS)
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

    What only changed in BigQuery since its sync is named, and left to: bqh sync TABLE --changed
    """
    from bq_harper_assets.validation.verdict import ProofStatus

    project = open_project(profile)
    contract = contract_named(project, table)
    ran: Ran | None = None
    after: Equality | None = None
    with proving(project, contract, from_, to, slices) as looking:
        before = prove(looking, looking.cells, output, deep=deep, show=True, repairs=True)
        # A sync makes a cell equal to what BigQuery has now, whether or not its past can be had.
        not_equal = {ProofStatus.DIFFERS, ProofStatus.SOURCE_CHANGED}
        wrong = [proof for proof in before.proofs if proof.status in not_equal]
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
            proved = prove(looking, differing, output, deep=deep, show=True)
            after = replace(proved, unseen=Unseen())
    if output == "json":
        click.echo(json.dumps(_told(before, ran, after), indent=2, default=str))
    else:
        click.echo(_in_words(before, wrong, after))
    if ran and ran.error:
        click.echo(f"error: {ran.error}", err=True)
    sys.exit(ran.exit_code if ran and ran.error else _as_of_now(before, after).exit_code)


def _as_of_now(before: Equality, after: Equality | None) -> Equality:
    """All synced cells by their newest proof here, not by the proof that the run has made.

    What was never synced is no matter of a repair.
    """
    last = after.proofs if after else ()
    newest = {proof.cell: proof for proof in (*before.proofs, *last)}
    return replace(before, proofs=list(newest.values()), unseen=Unseen())


def _in_words(before: Equality, wrong: "Sequence[CellProof]", after: Equality | None) -> str:
    name = before.contract.id
    if not wrong or after is None:
        told = f"nothing was repaired: no cell of {name} differs from what BigQuery had"
        if before.changed:
            told += (
                f", and BigQuery has changed since in {some_windows(before.changed)}; "
                f"to bring these up to date, type: bqh sync {name} --changed"
            )
        return told
    mended = [proof for proof, now in zip(wrong, after.proofs, strict=False) if _is_right(now)]
    counts = ", ".join(
        f"{sum(getattr(proof, kind) for proof in mended):,} {kind}"
        for kind in ("missing", "changed", "phantom")
    )
    return f"{len(mended):,} of {len(wrong):,} cells of {name} mended: {counts} rows"


def _is_right(proof: "CellProof") -> bool:
    from bq_harper_assets.validation.verdict import ProofStatus

    return proof.status in (ProofStatus.PROVED, ProofStatus.OPEN)


def _told(before: Equality, ran: Ran | None, after: Equality | None) -> dict[str, Any]:
    return {
        "before": equality_json(before),
        "repair": ran.as_json() if ran else None,
        "after": equality_json(after) if after else None,
    }
