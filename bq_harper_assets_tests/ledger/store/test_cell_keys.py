"""Cells that a table cannot have are refused."""

import re

import pytest

from bq_harper_assets.ledger.errors import PlanRefused
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import (
    CellKey,
    Leases,
    LedgerRoute,
)
from bq_harper_assets_tests.ledger.sample import (
    HOUR,
    T,
    cell,
    copy,
)
from bq_harper_assets_tests.ledger.verbs.test_batch_plans import END, START, leases

__all__ = ["leases"]
UNFIT = [
    ([], "no cells"),
    ([copy(cell()), copy(cell())], "named 2 times"),
    ([copy(cell(slice=2))], "lease of slice 2 was not taken"),
    (
        [copy(CellKey.of_window(START, END + HOUR, 0))],
        f"{START} to {END + HOUR} is not a window of 1:00:00",
    ),
    ([copy(CellKey.of_window(START + HOUR / 2, END + HOUR / 2, 0))], "not a window of 1:00:00"),
]


def test_cells_that_do_not_fit_are_refused(
    ledger: Ledger, table: LedgerRoute, leases: Leases
) -> None:
    for wanted, why in UNFIT:
        with pytest.raises(PlanRefused, match=re.escape(why)):
            ledger.plan(leases, T, 1, wanted, "run-1")
    assert ledger.history(table) == ()
    assert ledger.leases(table)[0].t is None
