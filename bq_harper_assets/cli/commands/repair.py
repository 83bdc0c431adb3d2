"""`bqh repair` syncs again what differs, and nothing else; then it proves it."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from bq_harper_assets.cli.exit_codes import PROOF_EXITS
from bq_harper_assets.cli.options import ALLOW_DELETES, DEEP, OUTPUT, PROFILE, cell_range
from bq_harper_assets.cli.output.equality import Equality, Unseen
from bq_harper_assets.cli.output.proof_text import equality_json
from bq_harper_assets.cli.output.run_results import RunResults
from bq_harper_assets.cli.output.windows_text import some_windows
from bq_harper_assets.cli.runs.asked_table import contract_named, open_project
from bq_harper_assets.cli.runs.proof_runs import prove, proving
from bq_harper_assets.cli.runs.ranged_runs import run_cells

if TYPE_CHECKING:
    from bq_harper_assets.validation.proof.cell_proof import CellProof


@click.command(epilog=PROOF_EXITS)
@click.argument("table")
@cell_range("the first", "the last")
@DEEP
@ALLOW_DELETES
@PROFILE
@OUTPUT
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

    It names what only changed in BigQuery since the sync; for that type: bqh sync TABLE --changed
    """
    from bq_harper_assets.validation.verdict import ProofStatus

    project = open_project(profile)
    contract = contract_named(project, table)
    ran: RunResults | None = None
    after: Equality | None = None
    with proving(project, contract, from_, to, slices) as looking:
        if looking.out_of_step:
            raise looking.out_of_step
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
    """Judges all synced cells by their newest proof here, not by the proof that the run has made.

    A repair does not concern what was never synced.
    """
    last = after.proofs if after else ()
    newest = {proof.cell: proof for proof in (*before.proofs, *last)}
    return replace(before, proofs=list(newest.values()), unseen=Unseen())


def _in_words(before: Equality, wrong: "Sequence[CellProof]", after: Equality | None) -> str:
    name = before.contract.id
    if not wrong or after is None:
        told = f"nothing was repaired: no cell of {name} differs from what BigQuery had"
        if before.moving:
            judged = any(proof.t for proof in before.proofs)
            told = f"nothing was repaired: {'some' if judged else 'all'} cells of {name} were"
            told += f" {before.not_judged}"
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


def _told(before: Equality, ran: RunResults | None, after: Equality | None) -> dict[str, Any]:
    return {
        "before": equality_json(before),
        "repair": ran.as_json() if ran else None,
        "after": equality_json(after) if after else None,
    }
