"""`bqh verify`: every synced row of a table in both stores, and what differs, like a diff."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from bq_harper_assets.cli.proving import Proving, proving
from bq_harper_assets.cli.runs import EXIT_DIFFERENCES, EXIT_ERROR, EXIT_PARTIAL, open_project
from bq_harper_assets.cli.sync import MOMENT, contract_named
from bq_harper_assets.contract.table import TableContract

if TYPE_CHECKING:
    from bq_harper_assets.sync.cells import Cell
    from bq_harper_assets.validation.cell_proof import CellProof
    from bq_harper_assets.validation.verdict import Difference

COUNTS = ("rows", "missing", "changed", "phantom", "quarantined", "kept")
SIGNS = {"missing": "-", "phantom": "+", "changed": "~"}
SHOWN = 20  # rows of a cell
_WIDTH = 12


@click.command()
@click.argument("table")
@click.option("--from", "from_", type=MOMENT, help="First window, UTC.  [default: the first]")
@click.option("--to", type=MOMENT, help="End of the last window, UTC.  [default: the last]")
@click.option("--slices", help="Only these, such as 0-1 or 2.  [default: all]")
@click.option("--deep", is_flag=True, help="Hash what Harper holds anew: do not trust its hashes.")
@click.option("--show", is_flag=True, help=f"Name the rows that differ, {SHOWN} of each cell.")
@click.option(
    "--profile", help="The profile of config/profiles.  [default: BQH_PROFILE, else local]"
)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def verify(
    table: str,
    from_: datetime | None,
    to: datetime | None,
    slices: str | None,
    deep: bool,
    show: bool,
    profile: str | None,
    output: str,
) -> None:
    """Compare all that is synced of TABLE with BigQuery as it was then, row by row.

    Nothing is moved. Exit code 0 if all is equal, 3 if something differs, 1 if a store did not
    answer, 2 if the configuration is wrong, 4 if cells could not be judged: they are being
    synced, or BigQuery has changed since and has no past of them.
    """
    project = open_project(profile)
    contract = contract_named(project, table)
    with proving(project, contract, from_, to, slices) as looking:
        proofs = prove(looking, looking.cells, output, deep=deep, show=show)
    if output == "json":
        click.echo(json.dumps(as_json(contract, proofs), indent=2, default=str))
    elif exit_code(proofs) == EXIT_DIFFERENCES:
        # What only the deep form sees, only the deep repair mends.
        click.echo(f"to mend it, type: bqh repair {contract.id}{' --deep' if deep else ''}")
    sys.exit(exit_code(proofs))


def prove(
    looking: Proving, cells: "Sequence[Cell]", output: str, *, deep: bool, show: bool
) -> "list[CellProof]":
    """The proofs, recorded; each window is told as soon as it is known, unless programs listen."""
    from bq_harper_assets.validation.verdict import ProofStatus

    console = Console(stderr=output == "json")
    say = _nothing if output == "json" else _printer(console)
    say(f"verifying {len(cells):,} cells of {looking.contract.id}")
    say(" ".join(("window".ljust(16), *(count.rjust(_WIDTH) for count in COUNTS), "as of")))
    proofs: list[CellProof] = []
    for part in looking.parts(cells, console, deep=deep, shown=SHOWN if show else 0):
        proofs += part
        for line in window_lines(part):
            say(line)
    for warning in looking.record(proofs):
        click.echo(f"warning: {warning}", err=True)
    say(f"{looking.contract.id} is {verdict_word(proofs)}, {_in_words(proofs, len(cells))}")
    for proof in proofs:
        if proof.verdict.could_not_look:
            click.echo(f"error: {proof.message}", err=True)
            break
    for proof in proofs:
        if proof.status is ProofStatus.SOURCE_CHANGED:
            click.echo(f"warning: {proof.verdict.message}", err=True)
            break
    return proofs


def window_lines(proofs: "Iterable[CellProof]") -> Iterator[str]:
    """A line for each window, and below it the rows that differ."""
    for window, group in groupby(proofs, lambda proof: proof.cell.window):
        of_window = list(group)
        counts = (f"{sum(getattr(p, count) for p in of_window):,}" for count in COUNTS)
        instants = [proof.t for proof in of_window if proof.t]
        t = f"{min(instants):%F %T}" if instants else "-"
        words = sorted({proof.status.value for proof in of_window})
        yield " ".join((window.key, *(c.rjust(_WIDTH) for c in counts), t, ", ".join(words)))
        for proof in of_window:
            yield from _row_lines(proof)


def _row_lines(proof: "CellProof") -> Iterator[str]:
    if not proof.differences:
        return
    yield f"  {proof.cell.key}"
    yield from (f"  {diff_line(difference)}" for difference in proof.differences)
    if more := proof.missing + proof.changed + proof.phantom - len(proof.differences):
        yield f"  ... and {more:,} more"


def diff_line(difference: "Difference") -> str:
    """Like a line of a diff: what the source has comes first."""
    columns = (f" {name}: {a!r} -> {b!r}" for name, (a, b) in difference.columns.items())
    return f"{SIGNS[difference.kind]} {difference.kind} {difference.id}{','.join(columns)}"


def verdict_word(proofs: "Sequence[CellProof]") -> str:
    """All of them in one word."""
    from bq_harper_assets.validation.verdict import Overall, ProofStatus

    if exit_code(proofs) == EXIT_ERROR:
        return Overall.ERROR.value
    issues = {ProofStatus.DIFFERS, ProofStatus.SOURCE_CHANGED}
    found = any(proof.status in issues for proof in proofs)
    return Overall.ISSUES_DETECTED.value if found else Overall.HEALTHY.value


def exit_code(proofs: "Sequence[CellProof]") -> int:
    """What could not be looked at is worse than what differs."""
    from bq_harper_assets.validation.verdict import ProofStatus

    if any(proof.verdict.could_not_look for proof in proofs):
        return EXIT_ERROR
    statuses = {proof.status for proof in proofs}
    if ProofStatus.DIFFERS in statuses:
        return EXIT_DIFFERENCES
    unjudged = {ProofStatus.MOVING, ProofStatus.SOURCE_CHANGED}
    return EXIT_PARTIAL if statuses & unjudged else 0


def as_json(contract: TableContract, proofs: "Sequence[CellProof]") -> dict[str, Any]:
    """For programs."""
    return {
        "table": contract.id,
        "target": contract.target_table,
        "verdict": verdict_word(proofs),
        **{count: sum(getattr(proof, count) for proof in proofs) for count in COUNTS},
        "cells": {
            proof.cell.key: {
                "status": proof.status.value,
                **{count: getattr(proof, count) for count in COUNTS},
                "snapshot": proof.t.isoformat() if proof.t else None,
                "source_changed_since": proof.source_changed,
                "message": proof.message,
                "differences": [difference.as_json() for difference in proof.differences],
            }
            for proof in proofs
        },
    }


def _in_words(proofs: "Sequence[CellProof]", asked: int) -> str:
    counted: dict[str, int] = {}
    for proof in proofs:
        counted[proof.status.value] = counted.get(proof.status.value, 0) + 1
    words = [f"{number:,} {word}" for word, number in sorted(counted.items())]
    if asked > len(proofs):
        words.append(f"{asked - len(proofs):,} not looked at")
    if since := sum(proof.source_changed for proof in proofs):
        words.append(f"BigQuery has changed since in the windows of {since:,}")
    return f"{asked:,} cells: {', '.join(words)}"


def _printer(console: Console) -> Any:
    return lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True)


def _nothing(line: str) -> None:
    """Programs read one document."""
