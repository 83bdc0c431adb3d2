"""Proves whole cells: compares every row of the source with every row that Harper holds.

Each cell is compared at the instant of its commit. Where BigQuery says that a window is now as it
was then, it is read as it is now: one read for all such windows, however long ago each was synced.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.questions.status import CellCommit, CellRecord
from bq_harper_assets.ledger.records import CellKey, LedgerRoute
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.diff.cell_diff import compare_cells
from bq_harper_assets.sync.ledger_facts import cell_key, committed_part, recorded_cells, version_of
from bq_harper_assets.sync.plan.recomputed_fingerprints import told_anew
from bq_harper_assets.sync.plan.shared_columns import Basis, SharedColumns
from bq_harper_assets.sync.protocols import Fingerprint, PinnedSource, Route
from bq_harper_assets.sync.spark.errors import errors_of_spark
from bq_harper_assets.sync.spark.job_watch import told_while_quiet
from bq_harper_assets.sync.turn_context import TurnSource
from bq_harper_assets.validation.proof.cell_differences import Explained, explain
from bq_harper_assets.validation.proof.cell_proof import (
    DIFFERENCES_SHOWN,
    CellProof,
    SourceLook,
    failed_proof,
    judged,
    moving,
    not_provable,
    told_without,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Prover:
    """A prover proves cells of one contract; it writes nothing and takes no lease."""

    route: Route
    spark: "SparkSession"
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    @property
    def contract(self) -> TableContract:
        """Returns what the user declares of the table."""
        return self.route.contract

    def prove(
        self, cells: Sequence[Cell], *, deep: bool = False, shown: int = DIFFERENCES_SHOWN
    ) -> list[CellProof]:
        """Gives a proof of each cell, in the order of `cells`."""
        table = self.route.ledger.find_route(self.contract.id)
        records = self._records(table, cells)

        def why_failed(cell: CellKey) -> str:
            newest = self.route.ledger.history(table, cell, 1) if table else ()
            return (newest[0].error or "") if newest else ""

        def unprovable(cell: Cell, record: CellRecord | None) -> CellProof | None:
            return not_provable(cell, record, self.contract.id, why_failed)

        proofs = {cell: proof for cell in cells if (proof := unprovable(cell, records.get(cell)))}
        commits = {
            cell: record.commit
            for cell, record in records.items()
            if cell not in proofs and record.commit is not None
        }
        found: dict[Cell, CellProof] = {}
        try:
            for cell, proof in self._compared(table, commits, deep, shown) if table else ():
                found[cell] = proof
        except BqhError as error:
            found |= {cell: failed_proof(cell, error) for cell in commits if cell not in found}
        after = self._records(table, cells) if commits else {}
        for cell, proof in found.items():
            moved = after[cell].commit != commits[cell]
            proofs[cell] = moving(cell) if moved else unprovable(cell, after[cell]) or proof
        return [proofs[cell] for cell in cells]

    def _records(
        self, table: LedgerRoute | None, cells: Sequence[Cell]
    ) -> Mapping[Cell, CellRecord]:
        return {} if table is None else recorded_cells(self.route.ledger, table, cells)

    def _compared(
        self, table: LedgerRoute, commits: Mapping[Cell, CellCommit], deep: bool, shown: int
    ) -> Iterator[tuple[Cell, CellProof]]:
        """Compares the cells; an error with some of them is raised after the others."""
        if not commits:
            return
        start = min(cell.range.axis_start for cell in commits)
        end = max(cell.range.axis_end for cell in commits)
        before = version_of(self.route.ledger.newest_schema(table))
        with (
            self.route.source("proof") as opened,
            self.route.target(self.retry.within(self.contract.sync.give_up_after)) as target,
            opened.pinned(self.contract, start, end, before) as pin,
        ):
            source = TurnSource(
                contract=self.contract,
                cut=self.route.cut,
                spark=self.spark,
                pin=pin,
                target=target,
                tasks=target.tasks,
                others=target.known_paths(pin.plan) if deep else None,
            )
            shared = SharedColumns.of(self.route.ledger, table, pin.plan.version)
            groups: dict[tuple[Basis, bool], dict[Cell, CellCommit]] = {}
            for cell, commit in commits.items():
                version = commit.schema_version
                # Stored hashes that count a removed column are computed again from the values.
                by_values = deep or not shared.has_stored_hashes(version)
                groups.setdefault((shared.basis(version), by_values), {})[cell] = commit
            yield from _all_of(
                self._grouped(source, shared, basis, group, by_values, shown)
                for (basis, by_values), group in groups.items()
            )

    def _grouped(
        self,
        source: TurnSource,
        shared: SharedColumns,
        basis: Basis,
        commits: Mapping[Cell, CellCommit],
        deep: bool,
        shown: int,
    ) -> Iterator[tuple[Cell, CellProof]]:
        """Compares cells that share the same columns with the source."""
        pin = source.pin.restricted(basis)
        now = _prints(pin, commits)
        untold = {cell_key(cell): c for cell, c in commits.items() if not shared.is_told(c)}
        told = told_anew(pin, untold, shared.versions)
        then: dict[tuple[datetime, int], dict[Cell, CellCommit]] = {}
        as_now = {}
        changed = set()
        for cell, commit in commits.items():
            if now[cell].text != told.get(cell_key(cell), commit.fingerprint):
                changed.add(cell)
            # A query cannot be read as of an earlier time.
            if cell in changed and pin.has_past and pin.keeps(commit.t):
                then.setdefault((commit.t, commit.schema_version), {})[cell] = commit
            else:
                as_now[cell] = commit
        pins = [(pin, as_now)]
        pins += [
            (pin.at(t, shared.versions[version]), group) for (t, version), group in then.items()
        ]
        left_out = shared.left_out(basis)
        for cell, proof in _all_of(
            self._at(replace(source, pin=each), group, now, changed, deep, shown)
            for each, group in pins
        ):
            yield cell, told_without(proof, left_out)

    def _at(
        self,
        source: TurnSource,
        commits: Mapping[Cell, CellCommit],
        prints: Mapping[Cell, Fingerprint],
        changed: Collection[Cell],
        deep: bool,
        shown: int,
    ) -> Iterator[tuple[Cell, CellProof]]:
        if not commits:
            return
        parts = {cell: committed_part(commit, cell) for cell, commit in commits.items()}
        keyless = not source.pin.plan.selection.key
        is_past = any(commit.t == source.pin.t for commit in commits.values())
        has_equal_rows = keyless and (  # today's fingerprints do not say it of the past
            is_past or any(prints[cell].distinct < prints[cell].rows for cell in commits)
        )
        rows = {cell.range: max(prints[cell].rows, commits[cell].rows) for cell in commits}
        then = f"A proof writes nothing. Next: bqh verify {self.contract.id}"
        what = f"comparing {len(commits):,} cells of {self.contract.id}"
        with told_while_quiet(self.spark, what), errors_of_spark(self.contract.id, commits, then):
            diffs = compare_cells(source, parts, rows, has_equal_rows=has_equal_rows, deep=deep)
            explained = explain(
                source,
                self.route.ledger,
                parts,
                diffs,
                has_equal_rows=has_equal_rows,
                shown=shown,
            )
        for cell, diff in diffs.items():
            why = explained.get(cell, Explained())
            look = SourceLook(
                t=source.pin.t,
                is_query=not source.pin.has_past,
                has_changed=cell in changed,
                deep=deep,
            )
            yield cell, judged(cell, commits[cell], self.contract, look, diff, why)


def _all_of(
    parts: Iterable[Iterator[tuple[Cell, CellProof]]],
) -> Iterator[tuple[Cell, CellProof]]:
    """Yields from all parts; an error of one is raised after the last, so that none is lost."""
    errors: list[BqhError] = []
    for part in parts:
        try:
            yield from part
        except BqhError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _prints(pin: PinnedSource, commits: Mapping[Cell, CellCommit]) -> dict[Cell, Fingerprint]:
    """Computes today's fingerprint of each cell's range, as far as the cell was committed."""
    closed = [cell.range for cell, commit in commits.items() if commit.is_closed]
    found: Mapping[int, Fingerprint] = {}
    if closed:
        start = min(each.axis_start for each in closed)
        found = pin.fingerprints(start, max(each.axis_end for each in closed))
    parts = {cell: committed_part(commit, cell) for cell, commit in commits.items()}
    opened: dict[int, Mapping[int, Fingerprint]] = {}
    for cell, part in parts.items():
        if not commits[cell].is_closed and part.end not in opened:
            opened[part.end] = pin.fingerprints(part.begin, part.end)
    return {
        cell: (found if commit.is_closed else opened[parts[cell].end])[parts[cell].begin]
        for cell, commit in commits.items()
    }
