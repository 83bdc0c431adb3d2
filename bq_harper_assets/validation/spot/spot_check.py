"""Checks whether rows picked at random are the same in both stores, in both directions.

From BigQuery: a row at a random time must be in Harper, in every column. From Harper: the row at a
random instant must be in BigQuery. Each is compared with the source as it was when its cell was
committed, so that a change since then is no difference.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from random import Random, SystemRandom
from typing import Any

from bq_harper_assets.errors import BqhError
from bq_harper_assets.instants import floor_to_window
from bq_harper_assets.ledger.questions.status import CellCommit
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.stores.bigquery.source import Pinned, pinned
from bq_harper_assets.stores.harper.client import Row
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.stores.harper.target import HarperTarget
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.cut import TimeCut
from bq_harper_assets.sync.ledger_facts import cell_key, committed_part, version_of
from bq_harper_assets.sync.plan.shared_columns import SharedColumns
from bq_harper_assets.sync.turn_context import SourceReader
from bq_harper_assets.validation.spot.compared_rows import ComparedRow, Comparison, Outcome, Side
from bq_harper_assets.validation.spot.harper_sample import harper_rows
from bq_harper_assets.validation.spot.sampled_cells import Commits, commits_of, of_some
from bq_harper_assets.validation.spot.source_sample import rows_at, times_of, uncrowded
from bq_harper_assets.validation.spot.spot_verdict import (
    NOTHING_SYNCED,
    spot_verdict,
    verdict_of_rows,
)
from bq_harper_assets.validation.subject import Subject, stored_instant
from bq_harper_assets.validation.verdict import (
    Difference,
    DifferenceKind,
    Severity,
    SpotStatus,
    Verdict,
)

# A sample has at least this many times of a window per slice, so that each slice likely has a row.
TIMES_PER_SLICE = 5


def check_spot(
    subject: Subject,
    cells: Sequence[Cell] | None = None,
    *,
    size: int | None = None,
    seed: int | None = None,
) -> Verdict:
    """Compares random rows of these cells, or of all cells of the table, in both directions.

    `size` is the contract's if left out, and `seed` repeats a sample. If a store does not answer,
    no error is raised: the verdict says so.
    """
    seed = SystemRandom().randrange(2**32) if seed is None else seed
    size = subject.contract.spot_check_size if size is None else size
    asked = {"seed": seed, "sample_size": size}
    try:
        return _checked(subject, cells, size, seed, asked)
    except BqhError as error:
        return spot_verdict(SpotStatus.CHECK_FAILED, str(error), asked)


def _checked(
    subject: Subject, cells: Sequence[Cell] | None, size: int, seed: int, asked: dict[str, Any]
) -> Verdict:
    table = subject.table()
    commits = _commits(subject, table, cells) if table else {}
    if table is None or not commits:
        return spot_verdict(SpotStatus.NO_DATA, NOTHING_SYNCED, asked, Severity.WARN)
    chance = Random(seed)
    of_source = of_some(commits, size, chance, by_rows=True)
    of_harper = of_some(commits, size, chance, by_rows=False)
    commits = {cell: commits[cell] for cell in (*of_source, *of_harper)}
    first = min(cell.window.start for cell in commits)
    last = max(commit.upto for commit in commits.values())
    before = version_of(subject.ledger.newest_schema(table))
    # The declared slices may be others than those that the rows were synced with.
    contract = subject.contract.model_copy(update={"slices": table.facts.slices})
    with pinned(subject.queries, harper_plan, subject.contract, first, last, before) as pin:
        target = HarperTarget(contract, subject.harper)
        source = SourceReader(
            contract=contract, cut=TimeCut(contract.window), pin=pin, target=target
        )
        check = _Check(
            subject=subject,
            pin=pin,
            source=source,
            bases=SharedColumns.of(subject.ledger, table, pin.plan.version),
            commits=commits,
            seed=seed,
        )
        found = list(harper_rows(subject.harper, source, commits, of_harper, chance))
        rows = list(check.compare(of_source, found))
    settled = [_settled(subject, table, row, commits[row.cell].batch) for row in rows]
    held = sum(commit.rows for commit in commits.values())
    is_past = all(map(check.is_past, commits.values()))
    return verdict_of_rows(settled, asked, held, len(check.crowded), is_past=is_past)


def _commits(subject: Subject, table: LedgerRoute, cells: Sequence[Cell] | None) -> Commits:
    first, last = subject.start(), subject.ledger.now() + subject.contract.window
    if cells is not None:
        first = min((cell.window.start for cell in cells), default=None)
        last = max((cell.window.end for cell in cells), default=last)
    if first is None:
        return {}
    wanted = None if cells is None else set(cells)
    commits = commits_of(subject.ledger.cells(table, first, last))
    return {c: commit for c, commit in commits.items() if wanted is None or c in wanted}


@dataclass(frozen=True, kw_only=True)
class _Check:
    subject: Subject
    pin: Pinned
    source: SourceReader
    bases: SharedColumns
    commits: Commits
    seed: int
    crowded: set[datetime] = field(default_factory=set)  # times with too many rows to read

    def is_past(self, commit: CellCommit) -> bool:
        """Says whether BigQuery has the source as it was at the commit."""
        return self.pin.has_past and self.pin.keeps(commit.t)

    def compare(
        self, wanted: Mapping[Cell, int], found: Sequence[tuple[Cell, Row]]
    ) -> Iterator[ComparedRow]:
        """Compares the rows, apart for each instant and each schema version."""
        plan, kind = self.source.rows, self.pin.plan.selection.timestamp.kind
        timed: list[tuple[Cell, Row, datetime]] = []
        for cell, row in found:
            if moment := stored_instant(kind, row[plan.timestamp]):
                timed.append((cell, row, moment))
            else:
                phantom = Difference(DifferenceKind.PHANTOM, row[plan.primary_key])
                yield ComparedRow(cell, Side.HARPER, Outcome.DIFFERENT, phantom)
        most = self.source.contract.slices * max((TIMES_PER_SLICE, *wanted.values()))
        alike: dict[tuple[datetime | None, int], list[Cell]] = {}
        for cell in dict.fromkeys((*wanted, *(cell for cell, _, _ in timed))):
            commit = self.commits[cell]
            t = commit.t if self.is_past(commit) else None
            alike.setdefault((t, commit.schema_version), []).append(cell)
        for (t, version), cells in alike.items():
            pin = self.pin.restricted(self.bases.basis(version))
            pin = pin.at(t, self.bases.versions[version]) if t else pin
            source = replace(self.source, pin=pin)
            of_cells = {cell: wanted[cell] for cell in cells if cell in wanted}
            there = [each for each in timed if each[0] in set(cells)]
            moments = [moment for _, _, moment in there]
            counts = self._readable(pin, of_cells, moments, most)
            comparison = Comparison(
                harper=self.subject.harper,
                source=source,
                parts={cell: committed_part(self.commits[cell], cell) for cell in cells},
                wanted=of_cells,
                found=[(cell, row) for cell, row, moment in there if moment in counts],
                seed=self.seed,
            )
            yield from comparison.of(counts)

    def _readable(
        self, pin: Pinned, cells: Iterable[Cell], moments: list[datetime], most: int
    ) -> dict[datetime, int]:
        """Picks times of the cells' rows; counts the rows of these and of the given moments."""
        window, queries, pinned_source = pin.contract.window, pin.queries, pin.source
        ends = sorted((self.commits[cell].upto, cell.window.start) for cell in cells)
        until = {start: upto for upto, start in ends}
        moments += times_of(queries, pinned_source, until, window, most, self.seed)
        by_window: dict[datetime, dict[datetime, int]] = {}
        for moment, count in rows_at(queries, pinned_source, moments).items():
            by_window.setdefault(floor_to_window(moment, window), {})[moment] = count
        readable: dict[datetime, int] = {}
        for counts in by_window.values():
            kept = uncrowded(counts)
            self.crowded.update(counts.keys() - set(kept))
            readable |= {moment: counts[moment] for moment in kept}
        return readable


def _settled(subject: Subject, table: LedgerRoute, row: ComparedRow, batch: int) -> ComparedRow:
    """Asks the ledger again about a difference, because turns go on during the check."""
    if row.difference is None:
        return row
    cell = cell_key(row.cell)
    now = subject.ledger.cells(table, cell.window_start, cell.window_end, [cell.slice])
    if not any(r.is_clean and r.commit and r.commit.batch == batch for r in now):
        return ComparedRow(row.cell, row.side, Outcome.MOVED)
    if row.difference.kind is DifferenceKind.MISSING and any(
        each.rejection.row_id == str(row.difference.id)
        for each in subject.ledger.quarantined(table, cell)
    ):
        return ComparedRow(row.cell, row.side, Outcome.UNSTORABLE)
    return row
