"""Rows that lie in no window are told by the newest check that could count them."""

from pathlib import Path

from bq_harper_assets.cli.output.outside_rows import OutsideRows, outside_lines, outside_row_lines
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.verbs.audit import Note
from bq_harper_assets_tests.defs.test_partitions import contract
from bq_harper_assets_tests.ledger.sample import FACTS
from bq_harper_assets_tests.stores.small_tables import utc


def _note(**counted: int) -> Note:
    """Of a validation; without figures BigQuery did not answer."""
    checks = {"progress": {"metadata": counted}, "proof": {"metadata": {"rows_in_future": 99}}}
    return Note("validation", "positions", "healthy", {"checks": checks})


def test_each_kind_is_told_with_its_remedy_by_the_newest_check_that_asked_bigquery(
    tmp_path: Path,
) -> None:
    ships = contract(id=FACTS.name)
    with open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        assert list(outside_lines(ships, ledger)) == []  # it is not synced yet
        table = ledger.register_route(FACTS)
        assert list(outside_lines(ships, ledger)) == []  # and was not checked
        older = {"rows_without_time": 7, "rows_before_start": 7, "rows_in_future": 7}
        newer = {"rows_without_time": 1, "rows_before_start": 1234, "rows_in_future": 0}
        for note in (_note(**older), _note(**newer), _note()):
            ledger.record_audit(table, note)
        at = ledger.audit(table, kind="validation")[1].at
        told = list(outside_lines(ships, ledger))
    assert told == [
        f"  not copied: 1 row without ts (as of {at:%F %T} UTC);"
        " give them one in BigQuery, and they are synced",
        f"  not copied: 1,234 rows older than the first window (as of {at:%F %T} UTC);"
        " startTimestamp leaves them out",
    ]


def test_rows_in_the_future_come_by_themselves_and_one_row_is_one_row() -> None:
    found = OutsideRows(utc(2026, 1, 5), without_time=0, before_start=1, in_future=1_000)
    assert list(outside_row_lines("ts", found)) == [
        "  not copied: 1 row older than the first window (as of 2026-01-05 00:00:00 UTC);"
        " startTimestamp leaves them out",
        "  not copied: 1,000 rows with a ts in the future (as of 2026-01-05 00:00:00 UTC);"
        " they are synced when it has come",
    ]
