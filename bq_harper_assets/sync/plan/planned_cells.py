"""The plan decides, under the lease and at one T, which part of each cell to move in which mode."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import instant_at, micros_at
from bq_harper_assets.ledger.questions.status import CellRecord
from bq_harper_assets.ledger.records import Mode, Wanted
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.cut import CellRange
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.errors import WindowStillOpen
from bq_harper_assets.sync.identity.digest import Digest
from bq_harper_assets.sync.ledger_facts import cell_key, committed_part, recorded_cells
from bq_harper_assets.sync.plan.cell_work import CellWork
from bq_harper_assets.sync.plan.shared_columns import SharedColumns
from bq_harper_assets.sync.protocols import Fingerprint
from bq_harper_assets.sync.turn_context import TurnContext


def plan_cells(
    turn: TurnContext, version: int, cells: Sequence[Cell], run_id: str, *, deep: bool = False
) -> list[CellWork]:
    """Plans a batch per cell, in one transaction; `deep` does not rely on stored hashes."""
    source = turn.source
    uptos = {cell.range: _upto(turn, cell.range) for cell in cells}
    start = min(each.axis_start for each in uptos)
    prints = source.pin.fingerprints(start, max(uptos.values()))
    held = recorded_cells(turn.ledger, turn.table, cells)
    shared = SharedColumns.of(turn.ledger, turn.table, source.pin.plan.version)
    # A top-up does not compare the rows that the target has already.
    since = {} if deep else _prefixes(turn, held, shared)
    keyless = not source.pin.plan.selection.key
    wanted = []
    for cell in cells:
        found = prints[cell.range.axis_start]
        mode = Mode.NUMBER if keyless and found.distinct < found.rows else Mode.COPY
        if source.contract.target.is_adopted:
            mode = Mode.RECONCILE  # the target may have rows that no batch wrote
        upto, begin = uptos[cell.range], None
        if cell in since and upto < cell.range.axis_end:
            mode, begin = Mode.TOPUP, instant_at(since[cell][0])
        wanted.append(
            Wanted(
                cell=cell_key(cell),
                mode=mode,
                fingerprint=found.text,
                upto=None if upto == cell.range.axis_end else instant_at(upto),
                since=begin,
            )
        )
    position = source.pin.position
    batches = turn.ledger.plan(turn.keeper.leases, turn.t, version, wanted, run_id, position)
    works = []
    for cell, batch in zip(cells, batches, strict=True):
        found = prints[cell.range.axis_start]
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


def _upto(turn: TurnContext, cell_range: CellRange) -> int:
    """Returns up to where on the axis the range is read; raises WindowStillOpen if it must wait."""
    if not isinstance(cell_range, Window):
        return cell_range.axis_end
    return micros_at(_time_read_to(turn.source.contract, cell_range, turn.t))


def _time_read_to(contract: TableContract, window: Window, t: datetime) -> datetime:
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


def _version_of_all_rows(record: CellRecord | None) -> int | None:
    """Returns the one schema version of a cell's rows; None if they may have several.

    A batch that was not committed, or a row that came from another range, may have its own.
    """
    return record.commit.schema_version if record and record.commit and record.is_clean else None


def _prefixes(
    turn: TurnContext, held: Mapping[Cell, CellRecord], shared: SharedColumns
) -> Mapping[Cell, tuple[int, Fingerprint]]:
    """Returns the open cells whose committed part has not changed in the source.

    Each has the point on the axis up to which it is committed, and the fingerprint up to there.
    """
    seen: dict[tuple[int, int], Fingerprint] = {}
    unchanged = {}
    for cell, record in held.items():
        commit = record.commit
        if commit is None or not record.is_clean or commit.is_closed:
            continue
        if shared.may_be_stale(commit.schema_version):
            continue
        part = committed_part(commit, cell)
        extent = (part.begin, part.end)
        if extent not in seen:
            seen[extent] = turn.source.pin.fingerprints(*extent)[part.begin]
        if seen[extent].text == commit.fingerprint:
            unchanged[cell] = (part.end, seen[extent])
    return unchanged
