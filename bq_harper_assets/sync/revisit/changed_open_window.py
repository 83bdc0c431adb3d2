"""The open window's fingerprint shows whether its rows have changed since it was last synced."""

from collections.abc import Sequence

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import micros_at
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.questions.status import CellRecord
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.ledger_facts import recorded_cells, version_of
from bq_harper_assets.sync.protocols import Fingerprint, Source


def open_cells_due(
    ledger: Ledger, source: Source, contract: TableContract, cells: Sequence[Cell]
) -> list[Cell]:
    """Returns the cells of one open window that a sync would change; the source is asked once.

    If no row came, the fingerprint up to now equals the one of the commit.
    """
    window = cells[0].window
    table = ledger.find_route(contract.id)
    before = version_of(ledger.newest_schema(table)) if table else None
    with source.pinned(contract, window.axis_start, window.axis_end, before) as pin:
        upto = max(window.start, min(pin.t - contract.safety_lag, window.end))
        if upto == window.start:
            return []
        found = pin.fingerprints(window.axis_start, micros_at(upto))[window.axis_start]
    known = recorded_cells(ledger, table, cells) if table else {}
    return [cell for cell in cells if _is_due(known.get(cell), found)]


def _is_due(record: CellRecord | None, now: Fingerprint) -> bool:
    if record is None:
        return now.rows > 0
    if record.commit is None or not record.is_clean:
        return True
    return record.commit.fingerprint != now.text
