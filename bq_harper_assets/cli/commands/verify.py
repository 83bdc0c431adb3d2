"""`bqh verify`: is a table equal to BigQuery now? Every synced row in both stores is compared."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from bq_harper_assets.cli.commands.sync import MOMENT, contract_named
from bq_harper_assets.cli.exit_codes import ExitCode, exit_codes
from bq_harper_assets.cli.output.equality import Equality
from bq_harper_assets.cli.output.outside_rows import outside_lines
from bq_harper_assets.cli.runs.proof_runs import Proving, proving
from bq_harper_assets.cli.runs.ranged_runs import open_project

if TYPE_CHECKING:
    from bq_harper_assets.sync.cells.cell import Cell
    from bq_harper_assets.validation.proof.cell_proof import CellProof
    from bq_harper_assets.validation.verdict import Difference

_COUNTS = ("rows", "missing", "changed", "phantom", "quarantined", "kept")
SIGNS = {"missing": "-", "phantom": "+", "changed": "~", "lost": "?"}
_SHOWN = 20  # rows of a cell
_WIDTH = 12


EXITS = exit_codes(ExitCode.DIFFERS, ExitCode.PARTLY, ExitCode.CHANGED_SINCE)


@click.command(epilog=EXITS)
@click.argument("table")
@click.option("--from", "from_", type=MOMENT, help="First window, UTC.  [default: the first]")
@click.option("--to", type=MOMENT, help="End of the last window, UTC.  [default: the last]")
@click.option("--slices", help="Only these, such as 0-1 or 2.  [default: all]")
@click.option("--deep", is_flag=True, help="Hash what Harper holds anew: do not trust its hashes.")
@click.option("--show", is_flag=True, help=f"Name the rows that differ, {_SHOWN} of each cell.")
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
    """Tell whether all that is synced of TABLE is equal to BigQuery now, row by row.

    Each cell is compared with BigQuery as it was at its sync, and what changed in BigQuery since
    is named, as is what was not looked at. Nothing is moved.
    """
    project = open_project(profile)
    contract = contract_named(project, table)
    with proving(project, contract, from_, to, slices) as looking:
        found = prove(looking, looking.cells, output, deep=deep, show=show)
        if deep and not looking.unseen(looking.cells, given_up=0).outside:
            found = replace(found, presence=looking.presence())
    if output == "json":
        click.echo(json.dumps(equality_json(found), indent=2, default=str))
    elif found.presence:
        click.echo(f"  {found.presence.message}")
        for row in found.presence.rows:
            click.echo(f"  {diff_line(row)}")
    sys.exit(found.exit_code)


def prove(
    looking: Proving,
    cells: "Sequence[Cell]",
    output: str,
    *,
    deep: bool,
    show: bool,
    repairs: bool = False,
) -> Equality:
    """The proofs, recorded; each window is told as soon as it is known, unless programs listen."""
    console = Console(stderr=output == "json")
    say = _nothing if output == "json" else _printer(console)
    say(f"verifying {len(cells):,} cells of {looking.contract.id}")
    say(" ".join(("window".ljust(16), *(count.rjust(_WIDTH) for count in _COUNTS), "as of")))
    proofs: list[CellProof] = []
    at = looking.ledger.now()
    for part in looking.parts(cells, console, deep=deep, shown=_SHOWN if show else 0):
        proofs += part
        for line in window_lines(part):
            say(line)
    for warning in looking.record(proofs):
        click.echo(f"warning: {warning}", err=True)
    unseen = looking.unseen(cells, given_up=len(cells) - len(proofs))
    found = Equality(contract=looking.contract, at=at, proofs=proofs, unseen=unseen, deep=deep)
    for line in (*found.lines(repairs=repairs), *outside_lines(looking.contract, looking.ledger)):
        say(line)
    for proof in proofs:
        if proof.verdict.could_not_look:
            click.echo(f"error: {proof.message}", err=True)
            break
    return found


def window_lines(proofs: "Iterable[CellProof]") -> Iterator[str]:
    """A line for each window, and below it the rows that differ."""
    for window, group in groupby(proofs, lambda proof: proof.cell.window):
        of_window = list(group)
        counts = (f"{sum(getattr(p, count) for p in of_window):,}" for count in _COUNTS)
        instants = [proof.t for proof in of_window if proof.t]
        t = f"{min(instants):%F %T}" if instants else "-"
        words = sorted({proof.words for proof in of_window})
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


def equality_json(found: Equality) -> dict[str, Any]:
    """Returns what a proof found as programs read it."""
    return {
        "table": found.contract.id,
        "target": found.contract.target_table,
        **found.as_json(),
        **{count: sum(getattr(proof, count) for proof in found.proofs) for count in _COUNTS},
        "cells": {
            proof.cell.key: {
                "status": proof.status.value,
                **{count: getattr(proof, count) for count in _COUNTS},
                "snapshot": proof.t.isoformat() if proof.t else None,
                "source_changed_since": proof.source_changed,
                "message": proof.message,
                "differences": [difference.as_json() for difference in proof.differences],
            }
            for proof in found.proofs
        },
    }


def _printer(console: Console) -> Any:
    return lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True)


def _nothing(line: str) -> None:
    """Programs read one document."""
