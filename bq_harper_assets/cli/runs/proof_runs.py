"""Proofs that a terminal asks for are made some windows at a time, and recorded."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from bq_harper_assets.cli.output.equality import Equality, Unseen
from bq_harper_assets.cli.output.outside_rows import outside_lines
from bq_harper_assets.cli.output.proof_text import PROOF_HEADER, window_lines
from bq_harper_assets.cli.runs.asked_cells import cells_between, require_range, slices_asked
from bq_harper_assets.cli.runs.reachability import require_servers
from bq_harper_assets.cli.runs.readiness import find_out_of_step
from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError

if TYPE_CHECKING:
    from bq_harper_assets.ledger.ledger import Ledger
    from bq_harper_assets.ledger.questions.status import CellRecord
    from bq_harper_assets.sync.cells.cell import Cell
    from bq_harper_assets.sync.errors import OutOfStep
    from bq_harper_assets.sync.revisit.due_cells import Due
    from bq_harper_assets.validation.proof.cell_proof import CellProof
    from bq_harper_assets.validation.proof.prover import Prover
    from bq_harper_assets.validation.verdict import Verdict

WINDOWS_AT_ONCE = 96  # read, compared and forgotten together
SHOWN_ROWS = 20  # of a cell that differs
_EVER = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


class NothingSynced(BqhError):
    """No cell was ever synced of what a proof is asked for."""

    exit_code = 2  # what was asked for cannot be meant, and nothing was started


@dataclass(frozen=True, kw_only=True)
class Proving:
    """These cells of a table are to be proved, with what that needs."""

    contract: TableContract
    cells: "Sequence[Cell]"
    ledger: "Ledger"
    prover: "Prover"
    harper: HarperConnection
    due: "Sequence[Due]" = ()  # of closed windows in the range, that need work by the ledger
    out_of_step: "OutOfStep | None" = None  # ledger and Harper contradict each other

    def unseen(self, cells: "Sequence[Cell]", *, given_up: int) -> Unseen:
        """Says what a proof of `cells` leaves out of what it was asked for, and of the table."""
        from bq_harper_assets.sync.revisit.due_cells import Reason

        known = self.ledger.find_route(self.contract.id)
        synced = synced_of(self.ledger.cells(known, *_EVER)) if known else set()
        return Unseen(
            never_synced=tuple(due.cell for due in self.due if due.cell not in synced),
            closed_since=tuple(due.cell for due in self.due if due.reason is Reason.CLOSED_SINCE),
            outside=len(synced - set(self.cells)),
            given_up=given_up,
        )

    def proofs_in_turn(
        self, cells: "Sequence[Cell]", console: Console, *, deep: bool, shown: int
    ) -> "Iterator[list[CellProof]]":
        """Proves cells in the order of time, with a bar; it stops once a store does not answer."""
        columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
        hidden = not console.is_terminal
        with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
            task = progress.add_task(f"verifying {self.contract.id}", total=len(cells))
            for some in windows_at_once(cells, WINDOWS_AT_ONCE):
                proofs = self.prover.prove(some, deep=deep, shown=shown)
                progress.advance(task, len(some))
                yield proofs
                some_failed = any(proof.verdict.could_not_look for proof in proofs)
                if some_failed and not any(proof.t for proof in proofs):
                    return

    def presence(self) -> "Verdict | None":
        """Says whether windows find every row that Harper holds, and records it."""
        from bq_harper_assets.stores.harper.client import HarperClient
        from bq_harper_assets.validation.audit import record_validation
        from bq_harper_assets.validation.proof.presence import check_presence, note_presence

        table = self.ledger.find_route(self.contract.id)
        retry = self.prover.retry.within(self.contract.sync.give_up_after)
        with HarperClient(self.harper, retry=retry) as harper:
            found = check_presence(harper, self.ledger, self.contract)
            if table is not None and found is not None:
                note_presence(self.ledger, table, found)
                record_validation(self.ledger, harper, table, [found])
        return found

    def record(self, proofs: "Sequence[CellProof]") -> set[str]:
        """Records proofs in the ledger and in Harper; returns what Harper did not take."""
        from bq_harper_assets.stores.harper.client import HarperClient
        from bq_harper_assets.validation.proof.proof_records import record_checks

        table = self.ledger.find_route(self.contract.id)
        if table is None:
            return set()
        with HarperClient(self.harper, retry=self.prover.retry) as harper:
            return record_checks(self.ledger, harper, table, [], proofs)


@contextmanager
def proving(
    project: Project,
    contract: TableContract,
    from_: datetime | None,
    to: datetime | None,
    slices: str | None,
) -> Iterator[Proving]:
    """Opens what is synced in the range; TableChanged if its cells are not the contract's.

    Raises OutOfStep if the ledger knows of no cell there, and contradicts Harper.
    """
    require_range(from_, to)
    require_servers(project)
    out_of_step = find_out_of_step(project, [contract]).get(contract.id)
    # Here and not above: dagster and google's libraries take seconds to import.
    from bq_harper_assets.defs.resources import build_resources
    from bq_harper_assets.ledger.ledger import open_ledger
    from bq_harper_assets.routes.bigquery_to_harper import BigQueryToHarper, Stores
    from bq_harper_assets.sync.ledger_facts import table_facts
    from bq_harper_assets.validation.proof.prover import Prover

    bigquery, harper = project.bigquery, project.harper
    with open_ledger(project.ledger.url) as ledger:
        if ledger.find_route(contract.id):
            ledger.register_route(table_facts(contract, bigquery.project))
        try:
            cells = synced_cells(contract, ledger, from_, to, slices)
        except NothingSynced:
            if out_of_step:
                raise out_of_step from None
            raise
        due = _due(project, contract, ledger, from_, to, slices)
        resources = build_resources(project)
        route = BigQueryToHarper(Stores(bigquery, harper, ledger), contract)
        spark, retry = resources["spark"].spark_session, resources["harper"].retry()
        prover = Prover(route, spark, retry)
        yield Proving(
            contract=contract,
            cells=cells,
            ledger=ledger,
            prover=prover,
            harper=harper,
            due=due,
            out_of_step=out_of_step,
        )


def prove(
    looking: Proving,
    cells: "Sequence[Cell]",
    output: str,
    *,
    deep: bool,
    show: bool,
    repairs: bool = False,
) -> Equality:
    """Makes and records the proofs; tells each window once it is known, unless programs listen."""
    console = Console(stderr=output == "json")
    say = _nothing if output == "json" else _printer(console)
    if looking.out_of_step:
        say(f"{looking.contract.id} is out of step: {looking.out_of_step}")
    say(f"verifying {len(cells):,} cells of {looking.contract.id}")
    say(PROOF_HEADER)
    proofs: list[CellProof] = []
    at = looking.ledger.now()
    for some in looking.proofs_in_turn(cells, console, deep=deep, shown=SHOWN_ROWS if show else 0):
        proofs += some
        for line in window_lines(some):
            say(line)
    for warning in looking.record(proofs):
        click.echo(f"warning: {warning}", err=True)
    unseen = looking.unseen(cells, given_up=len(cells) - len(proofs))
    found = Equality(
        contract=looking.contract,
        at=at,
        proofs=proofs,
        unseen=unseen,
        deep=deep,
        out_of_step=str(looking.out_of_step) if looking.out_of_step else None,
    )
    for line in (*found.lines(repairs=repairs), *outside_lines(looking.contract, looking.ledger)):
        say(line)
    for proof in proofs:
        if proof.verdict.could_not_look:
            click.echo(f"error: {proof.message}", err=True)
            break
    return found


def _due(
    project: Project,
    contract: TableContract,
    ledger: "Ledger",
    from_: datetime | None,
    to: datetime | None,
    slices: str | None,
) -> "list[Due]":
    """Lists cells of closed windows in the range that the ledger knows to need work."""
    from bq_harper_assets.defs.tables.first_window import first_window_start
    from bq_harper_assets.sync.revisit.horizon import standing

    start = first_window_start(project.bigquery, contract, ledger)
    asked = set(cells_between(contract, start, from_, to, slices))
    table = ledger.find_route(contract.id)
    # What a run writes now is not synced either.
    writing = [left.run_id for left in ledger.left_over(table)] if table else []
    due = standing(ledger, contract, start, ledger.now(), ended=writing).due
    return [each for each in due if each.cell in asked]


def synced_of(records: "Iterable[CellRecord]") -> "set[Cell]":
    """Returns the cells that were committed."""
    from bq_harper_assets.sync.cells.cell import Cell
    from bq_harper_assets.sync.cells.window import Window

    return {
        Cell(Window(record.cell.window_start, record.cell.window_end), record.cell.slice)
        for record in records
        if record.commit
    }


def synced_cells(
    contract: TableContract,
    ledger: "Ledger",
    from_: datetime | None,
    to: datetime | None,
    slices: str | None,
) -> "list[Cell]":
    """Lists the cells of the range that were committed; raises NothingSynced if there is none."""
    from bq_harper_assets.instants import floor_to_window

    first = floor_to_window(from_.replace(tzinfo=UTC), contract.window) if from_ else _EVER[0]
    last = to.replace(tzinfo=UTC) if to else _EVER[1]
    table = ledger.find_route(contract.id)
    known = ledger.cells(table, first, last, slices_asked(contract, slices)) if table else ()
    cells = sorted(synced_of(known))
    if not cells:
        where = " in that range" if from_ or to or slices else " yet"
        raise NothingSynced(
            f"nothing of {contract.id} is synced{where}, so there is nothing to compare. Next: bqh"
            f" sync {contract.id}"
        )
    return cells


def windows_at_once(cells: "Sequence[Cell]", most: int) -> "Iterator[list[Cell]]":
    """Groups the cells by `most` whole windows at a time."""
    some: list[Cell] = []
    windows = 0
    for _, of_window in groupby(cells, lambda cell: cell.window):
        if windows == most:
            yield some
            some, windows = [], 0
        some += of_window
        windows += 1
    if some:
        yield some


def _printer(console: Console) -> Any:
    return lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True)


def _nothing(line: str) -> None:
    """Says nothing, because programs read one document."""
