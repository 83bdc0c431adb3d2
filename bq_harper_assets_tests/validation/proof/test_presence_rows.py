"""How the rows of many windows are read: together, as far as an answer goes."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.questions.status import CellCommit, CellRecord
from bq_harper_assets.ledger.records import CellKey, CellState
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.validation.proof import presence_rows
from bq_harper_assets.validation.proof.presence_rows import PresenceLook, time_ranges
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.ledger.sample import FACTS
from bq_harper_assets_tests.schema.samples import contract
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

    found = list(time_ranges([record(30, 1), record(5, 10), record(0, 10), record(10, 1)]))
    minutes = [((a - START) // MINUTE, (b - START) // MINUTE, rows) for a, b, rows in found]
    assert minutes == [(0, 10, 20), (10, 15, 1), (30, 35, 1)]


def test_a_page_begins_behind_the_last_id_of_the_one_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, nowhere: str
) -> None:
    monkeypatch.setattr(presence_rows, "ROWS_PER_PAGE", 2)
    with FaultProxy(nowhere) as proxy, open_ledger(empty_ledger(tmp_path / "l.db")) as ledger:
        first, last = b'[{"id":1},{"id":2}]', b'[{"id":3}]'
        proxy.on(Answer(200, first), operation="search_by_value", times=9)
        proxy.on(Answer(200, last), operation="search_by_conditions", times=9)
        login = HarperConnection(url=proxy.url, user="nobody", password=SecretStr("none"))
        with HarperClient(login) as harper:
            look = PresenceLook(
                harper=harper,
                ledger=ledger,
                table=ledger.register_route(FACTS),
                contract=contract(),
                primary_key="id",
                kind=Kind.TIMESTAMP,
                keyed=True,
            )
            assert look.counted().held == 3
        [after] = proxy.seen(operation="search_by_conditions")
    assert b'{"attribute":"id","comparator":"greater_than","value":2}' in after.body
