"""The numbers of schema versions: one for equal schemas, and none that goes back."""

import pytest

from bq_harper_assets.ledger.errors import (
    SchemaMoved,
)
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute


def test_equal_schemas_are_one_version_and_others_count_up(
    ledger: Ledger, table: LedgerRoute
) -> None:
    assert ledger.record_schema(table, {"columns": ("ts",)}, 1).version == 1
    second = ledger.record_schema(table, {"columns": ["ts"], "note": "\x00\ud800"}, 1)
    assert second.version == 2
    assert ledger.record_schema(table, {"note": "\x00\ud800", "columns": ["ts"]}, 2) == second
    assert ledger.record_schema(table, {"columns": ["ts"]}, 2).version == 3
    assert ledger.newest_schema(table) == ledger.schema_version(table, 3)
    assert ledger.schema_version(table, 2) == second
    assert ledger.schema_version(table, 4) is None


def test_a_schema_read_before_another_was_recorded_gets_no_higher_number(
    ledger: Ledger, table: LedgerRoute
) -> None:
    ledger.record_schema(table, {"columns": ["ts", "new"]}, 1)
    with pytest.raises(SchemaMoved) as caught:
        ledger.record_schema(table, {"columns": ["ts"]}, 1)
    assert str(caught.value) == (
        "another run has recorded schema version 2 of positions, and this one has read the source's"
        " columns when 1 was the newest. Nothing was recorded. Read them again: bqh sync positions"
    )
    assert ledger.record_schema(table, {"columns": ["ts", "new"]}, 1).version == 2
