"""The plan decides, under the lease and at one T, which part of each cell to move in which mode."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.questions.status import CellRecord
from bq_harper_assets.ledger.records import Mode, Wanted
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.errors import WindowStillOpen
from bq_harper_assets.sync.identity.digest import Digest
from bq_harper_assets.sync.ledger_facts import cell_key
from bq_harper_assets.sync.plan.cell_work import CellWork
from bq_harper_assets.sync.plan.shared_columns import SharedColumns
from bq_harper_assets.sync.protocols import Fingerprint
from bq_harper_assets.sync.turn_context import TurnContext


def plan_cells(
    turn: TurnContext, version: int, cells: Sequence[Cell], run_id: str, *, deep: bool = False
) -> list[CellWork]:
    """Plans a batch per cell, in one transaction; `deep` does not rely on stored hashes."""
    source = turn.source
    uptos = {cell.window: _upto(source.contract, cell.window, turn.t) for cell in cells}
    start, end = min(uptos).start, max(uptos.values())
    length = source.contract.window
    prints = source.pin.fingerprints(start, end, length)
    held = _held_before(turn, cells)
    shared = SharedColumns.of(turn.ledger, turn.table, source.pin.plan.version)
    # A top-up does not compare the rows that the target has already.
    since = {} if deep else _prefixes(turn, held, shared)
    keyless = not source.pin.plan.selection.key
    wanted = []
    for cell in cells:
        found = prints[cell.window.start]
        mode = Mode.NUMBER if keyless and found.distinct < found.rows else Mode.COPY
        if source.contract.target.is_adopted:
            mode = Mode.RECONCILE  # the target may have rows that no batch wrote
        upto = uptos[cell.window]
        if cell in since and upto < cell.window.end:
            wanted.append(
                Wanted(
                    cell=cell_key(cell),
                    mode=Mode.TOPUP,
                    fingerprint=found.text,
                    upto=upto,
                    since=since[cell][0],
                )
            )
        else:
            wanted.append(Wanted(cell=cell_key(cell), mode=mode, fingerprint=found.text, upto=upto))
    position = source.pin.position
    batches = turn.ledger.plan(turn.keeper.leases, turn.t, version, wanted, run_id, position)
    works = []
    for cell, batch in zip(cells, batches, strict=True):
        found = prints[cell.window.start]
        before = since[cell][1].rows if batch.mode is Mode.TOPUP else 0
        commit = held[cell].commit if cell in held else None
        work = CellWork(
            cell=cell,
            batch=batch,
            rows=found.rows - before,
            has_equal_rows=keyless and found.distinct < found.rows,
            may_be_stale=deep or shared.may_be_stale(_version_of_all_rows(held.get(cell))),
        )
        if batch.mode is Mode.TOPUP and commit:
            work.digest_before = Digest.parse(commit.digest)
        works.append(work)
    return works


def _upto(contract: TableContract, window: Window, t: datetime) -> datetime:
    """Returns the time up to which the window is read; raises WindowStillOpen if it must wait."""
    closed = t - contract.safety_lag
    if window.end <= closed:
        return window.end
    if contract.live and window.start < closed:
        return closed
    what = "is open until" if window.start < closed or not contract.live else "begins at"
    when = window.end if what == "is open until" else window.start
    raise WindowStillOpen(
        f"the window {window.key} of {contract.id} {what} {when + contract.safety_lag:%F %T} UTC. "
        "Nothing was written; run it again then"
    )


def _held_before(turn: TurnContext, cells: Sequence[Cell]) -> Mapping[Cell, CellRecord]:
    starts = [cell.window.start for cell in cells]
    end = max(starts) + turn.source.contract.window
    records = turn.ledger.cells(turn.table, min(starts), end)
    by_key = {record.cell: record for record in records}
    return {cell: by_key[cell_key(cell)] for cell in cells if cell_key(cell) in by_key}


def _version_of_all_rows(record: CellRecord | None) -> int | None:
    """Returns the one schema version of a cell's rows; None if they may have several.

    A batch that was not committed, or a row that came from another window, may have its own.
    """
    return record.commit.schema_version if record and record.commit and record.is_clean else None


def _prefixes(
    turn: TurnContext, held: Mapping[Cell, CellRecord], shared: SharedColumns
) -> Mapping[Cell, tuple[datetime, Fingerprint]]:
    """Returns the open cells whose committed part has not changed in the source.

    Each has the time up to which it is committed, and the fingerprint up to there.
    """
    source = turn.source
    seen: dict[tuple[Window, datetime], Fingerprint] = {}
    unchanged = {}
    for cell, record in held.items():
        commit = record.commit
        if commit is None or not record.is_clean or commit.is_closed:
            continue
        if shared.may_be_stale(commit.schema_version):
            continue
        extent = (cell.window, commit.upto)
        if extent not in seen:
            length = source.contract.window
            found = source.pin.fingerprints(cell.window.start, commit.upto, length)
            seen[extent] = found[cell.window.start]
        if seen[extent].text == commit.fingerprint:
            unchanged[cell] = (commit.upto, seen[extent])
    return unchanged
