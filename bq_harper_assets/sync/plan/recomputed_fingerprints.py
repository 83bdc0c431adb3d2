"""Fingerprints of old commits are recomputed over the columns that still exist.

Each is recomputed as of its commit's own instant.
"""

from collections.abc import Mapping
from datetime import datetime

from bq_harper_assets.instants import micros_at
from bq_harper_assets.ledger.questions.status import CellCommit
from bq_harper_assets.ledger.records import CellKey
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.sync.protocols import PinnedSource


def told_anew(
    pin: PinnedSource,
    cells: Mapping[CellKey, CellCommit],
    versions: Mapping[int, TableVersion],
) -> dict[CellKey, str]:
    """Recomputes fingerprints of cells over the columns of `pin`, as of each commit's own instant.

    Each such instant costs a query. Cells whose instant the source no longer keeps are left out.
    """
    if not pin.has_past:
        return {}
    groups: dict[tuple[datetime, datetime | None, int], list[CellKey]] = {}
    for cell, commit in cells.items():
        if pin.keeps(commit.t):
            upto = None if commit.is_closed else commit.upto
            groups.setdefault((commit.t, upto, commit.schema_version), []).append(cell)
    told = {}
    for (t, upto, version), group in groups.items():
        start = min(cell.start for cell in group)
        end = micros_at(upto) if upto else max(cell.end for cell in group)
        then = pin.at(t, versions[version]).fingerprints(start, end)
        told.update({cell: then[cell.start].text for cell in group})
    return told
