"""Windows whose source has changed since they were synced are found by their fingerprints.

The source computes both fingerprints, at the sync and now, so equal ones mean equal rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import instant_at
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.questions.status import CellCommit, CellRecord, GuardRefusal
from bq_harper_assets.ledger.records import CellKey, LedgerRoute
from bq_harper_assets.sync.cells.window import Span, Window
from bq_harper_assets.sync.ledger_facts import version_of
from bq_harper_assets.sync.plan.recomputed_fingerprints import told_anew
from bq_harper_assets.sync.plan.shared_columns import Basis, SharedColumns
from bq_harper_assets.sync.protocols import Fingerprint, PinnedSource, Source
from bq_harper_assets.sync.revisit.due_cells import (
    Reason,
    WindowFingerprint,
    due_cells,
    is_comparable,
)


@dataclass(frozen=True)
class SourceChanges:
    """Source changes are the windows whose fingerprints differ from their commits' ones."""

    changed: Mapping[datetime, WindowFingerprint] = field(
        default_factory=dict
    )  # by the start of a window
    windows: int = 0  # how many were compared
    bytes_billed: int = 0


def look(
    ledger: Ledger, source: Source, contract: TableContract, ranges: Sequence[Span]
) -> SourceChanges:
    """Compares the cells of the ranges with the source.

    This costs one query for each range, and one more for each earlier schema version under which
    cells in it were synced.
    """
    table = ledger.find_route(contract.id)
    if table is None:
        return SourceChanges()
    billed = source.bytes_billed
    changed: dict[datetime, WindowFingerprint] = {}
    windows = 0
    for start, end in ranges:
        records = [r for r in ledger.cells(table, start, end) if is_comparable(r)]
        if records:
            found, compared = _compared(ledger, source, contract, table, records)
            windows += compared
            changed |= found
    return SourceChanges(changed, windows, source.bytes_billed - billed)


def _compared(
    ledger: Ledger,
    source: Source,
    contract: TableContract,
    table: LedgerRoute,
    records: Sequence[CellRecord],
) -> tuple[dict[datetime, WindowFingerprint], int]:
    """Returns the windows that changed, and how many were compared."""
    start = min(record.cell.start for record in records)
    end = max(record.cell.end for record in records)
    newest = ledger.newest_schema(table)
    before = version_of(newest)
    changed: dict[datetime, WindowFingerprint] = {}
    windows = 0
    with source.pinned(contract, start, end, before) as pin:
        shared = SharedColumns.of(ledger, table, pin.plan.version)
        groups: dict[Basis, list[CellRecord]] = {}
        for record in _not_spared(contract, pin, shared, records):
            basis = shared.basis(_last_look(record).schema_version)
            groups.setdefault(basis, []).append(record)
        for basis, group in groups.items():
            # An empty new column changes no fingerprint: one that differs has values to fill in.
            wanted = shared.all if contract.backfill else basis
            prints = _prints(pin.restricted(wanted), group)
            now = {start: each.text for start, each in prints.items()}
            windows += len(now)
            # Refused cells need none: if columns went since, the guard judges them again.
            clean = [record for record in group if not record.refusal]
            untold = {r.cell: c for r in clean if not shared.is_told(c := _commit(r))}
            told = told_anew(pin.restricted(basis), untold, shared.versions)
            if newest is not None and pin.plan.version == before:
                anew = [(cell, untold[cell].batch, text) for cell, text in told.items()]
                ledger.rebase_fingerprints(table, newest.version, anew)
            seen = {at: WindowFingerprint(text, pin.t) for at, text in now.items()}
            changed |= _changed(table, group, told, seen)
            for record in clean:
                at = record.cell.window_start
                if why := _due_all_the_same(record, prints[at], shared, contract):
                    changed[at] = WindowFingerprint(f"{now[at]} {why}", pin.t)
    return changed, windows


def _prints(pin: PinnedSource, records: Sequence[CellRecord]) -> dict[datetime, Fingerprint]:
    start = min(record.cell.start for record in records)
    end = max(record.cell.end for record in records)
    return {instant_at(begin): each for begin, each in pin.fingerprints(start, end).items()}


def _due_all_the_same(
    record: CellRecord, print_: Fingerprint, shared: SharedColumns, contract: TableContract
) -> str | None:
    """Returns why a window must be synced again although its fingerprint is equal; None if not."""
    if contract.backfill and shared.may_be_stale(_commit(record).schema_version):
        return "holds values of a column from before it went"
    if print_.distinct < print_.rows and _may_be_numbered_otherwise(record, shared):
        return "numbers its equal rows by a column that is gone"
    return None


def _may_be_numbered_otherwise(record: CellRecord, shared: SharedColumns) -> bool:
    """Says whether equal rows without a key may have been numbered by a column that is gone."""
    return not shared.now.key and not shared.has_stored_hashes(_last_look(record).schema_version)


def _commit(record: CellRecord) -> CellCommit:
    assert record.commit is not None  # is_comparable() ensures it
    return record.commit


def _last_look(record: CellRecord) -> CellCommit | GuardRefusal:
    """Returns the refusal, or else the commit, with which the source is compared."""
    return record.refusal or _commit(record)


def _not_spared(
    contract: TableContract,
    pin: PinnedSource,
    shared: SharedColumns,
    records: Sequence[CellRecord],
) -> Sequence[CellRecord]:
    """Leaves out windows whose rows the source surely has not changed since they were synced."""
    # An old partition may have values for a column that was added since.
    if contract.backfill:
        return records
    spans = [(r.cell.start, r.cell.end, _last_look(r).t) for r in records]
    return [
        record
        for record, is_unchanged in zip(records, pin.are_unchanged(spans), strict=True)
        if not is_unchanged or _may_be_numbered_otherwise(record, shared)
    ]


def _changed(
    table: LedgerRoute,
    records: Sequence[CellRecord],
    told: Mapping[CellKey, str],
    seen: Mapping[datetime, WindowFingerprint],
) -> dict[datetime, WindowFingerprint]:
    windows = sorted({Window(r.cell.window_start, r.cell.window_end) for r in records})
    as_told = [_with_fingerprint(r, told[r.cell]) if r.cell in told else r for r in records]
    due = due_cells(windows, table.facts.slices, as_told, seen=seen)
    starts = {each.cell.window.start for each in due if each.reason is Reason.SOURCE_CHANGED}
    return {start: seen[start] for start in starts}


def _with_fingerprint(record: CellRecord, text: str) -> CellRecord:
    return replace(record, commit=replace(_commit(record), fingerprint=text))
