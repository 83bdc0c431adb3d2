"""Names the rows that differ and their columns, and which of them quarantine accounts for."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.grid import Part
from bq_harper_assets.sync.diff.diff_job import CellDiff
from bq_harper_assets.sync.diff.rows_by_id import NamedRow, name_rows
from bq_harper_assets.sync.ledger_facts import cell_key
from bq_harper_assets.sync.spark.receipts import is_nameless
from bq_harper_assets.sync.turn_context import TurnSource
from bq_harper_assets.validation.verdict import Difference, DifferenceKind

MOST_NAMED = 5_000  # rows per cell that are named


@dataclass(frozen=True)
class Explained:
    """The differences of one cell are explained: by quarantine, or some of them by name."""

    quarantined: int = 0
    nameless: int = 0  # rows in quarantine that can have no id
    differences: tuple[Difference, ...] = ()


def explain(
    source: TurnSource,
    ledger: Ledger,
    parts: Mapping[Cell, Part],
    diffs: Mapping[Cell, CellDiff],
    *,
    has_equal_rows: bool,
    shown: int,
) -> dict[Cell, Explained]:
    """Explains the cells that differ; reads their source once more."""
    differing = {cell: diff for cell, diff in diffs.items() if not diff.is_equal}
    if not differing:
        return {}
    reading = source.reading(
        {cell: parts[cell] for cell in differing}, has_equal_rows=has_equal_rows
    )
    ids = [part[:MOST_NAMED] for d in differing.values() for part in (d.missing, d.changed)]
    rows: dict[int, list[NamedRow]] = {}
    for row in name_rows(
        source.spark, reading, source.target.of_tasks(source.spark), np.unique(np.concatenate(ids))
    ):
        rows.setdefault(row.place, []).append(row)
    return {
        cell: _explained(
            source, ledger, cell, diff, rows.get(reading.grid.place_of(cell), []), shown
        )
        for cell, diff in differing.items()
    }


def _explained(
    source: TurnSource,
    ledger: Ledger,
    cell: Cell,
    diff: CellDiff,
    rows: list[NamedRow],
    shown: int,
) -> Explained:
    table = ledger.find_route(source.contract.id)
    assert table is not None
    in_quarantine = [
        each.rejection.row_id
        for each in ledger.quarantined(table, cell_key(cell), limit=2 * MOST_NAMED)
    ]
    known = set(in_quarantine)
    missing = set(diff.missing.tolist())
    absent = [row for row in rows if row.id is not None and row.id_hash in missing]
    explained = [row for row in absent if str(row.id) in known]
    unexplained = [row for row in absent if str(row.id) not in known]
    differences = [Difference(DifferenceKind.MISSING, row.id) for row in unexplained[:shown]]
    changed = set(diff.changed.tolist())
    differences += _changed(source, [row for row in rows if row.id_hash in changed][:shown])
    if source.contract.deletes != "keep":
        phantoms = diff.vanished[:shown]
        differences += [Difference(DifferenceKind.PHANTOM, row_id) for row_id in phantoms]
    nameless = sum(map(is_nameless, in_quarantine))
    return Explained(len(explained), nameless, tuple(differences[:shown]))


def _changed(source: TurnSource, rows: list[NamedRow]) -> list[Difference]:
    if not rows:
        return []
    layout, target = source.rows, source.target
    stored = target.stored(layout, [row.id for row in rows])
    return [
        Difference(
            DifferenceKind.CHANGED,
            row.id,
            target.differing(layout, row.record, stored.get(row.id, {})),
        )
        for row in rows
    ]
