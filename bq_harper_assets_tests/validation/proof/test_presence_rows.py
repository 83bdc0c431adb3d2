"""How the rows of many windows are read: together, as far as an answer goes."""

import pytest

from bq_harper_assets.ledger.questions.status import CellCommit, CellRecord
from bq_harper_assets.ledger.records import CellKey, CellState
from bq_harper_assets.validation.proof import presence_rows
from bq_harper_assets.validation.proof.presence_rows import time_ranges
from bq_harper_assets_tests.validation.proof.test_presence import MINUTE, START


def test_neighbouring_windows_are_read_together_as_far_as_an_answer_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(presence_rows, "ROWS_PER_REQUEST", 20)

    def record(minute: int, rows: int) -> CellRecord:
        start = START + minute * MINUTE
        end = start + 5 * MINUTE
        commit = CellCommit(
            batch=1,
            t=START,
            schema_version=1,
            rows=rows,
            digest="",
            fingerprint="",
            committed_at=START,
            upto=end,
            is_closed=True,
        )
        return CellRecord(
            cell=CellKey.of_window(start, end, 0), state=CellState.SYNCED, commit=commit, marks=0
        )

    found = list(time_ranges([record(0, 10), record(5, 10), record(10, 1), record(30, 1)]))
    minutes = [((a - START) // MINUTE, (b - START) // MINUTE, rows) for a, b, rows in found]
    assert minutes == [(0, 10, 20), (10, 15, 1), (30, 35, 1)]
