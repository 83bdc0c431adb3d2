"""Which cells a validation looks at: those its run names, the newest ones, or whose turn it is."""

from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from bq_harper_assets.defs.checks.validation_jobs import named_cells, newest_cells
from bq_harper_assets.defs.resources import LEDGER_URLS, LedgerResource
from bq_harper_assets.ledger.records import CellKey, CellResult, Mode, Wanted
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets_tests.defs.test_partitions import contract
from bq_harper_assets_tests.stores.small_tables import utc


def test_a_run_names_one_partition_or_the_corners_of_many_or_none() -> None:
    table = contract(slices=3)
    one = named_cells(table, "2026-11-16T12:00|s01", None)
    assert [cell.key for cell in one or ()] == ["2026-11-16T12:00|s01"]
    corners = "2026-11-16T23:00|s01", "2026-11-17T00:00|s02"
    assert [cell.key for cell in named_cells(table, *corners) or ()] == [
        "2026-11-16T23:00|s01",
        "2026-11-16T23:00|s02",
        "2026-11-17T00:00|s01",
        "2026-11-17T00:00|s02",
    ]
    assert named_cells(table, None, None) is None
    with pytest.raises(ValueError, match="does not name a cell"):
        named_cells(table, "2026-11-16T12:00|s1", None)
    with pytest.raises(ValueError, match="there is no first"):
        named_cells(table, None, "2026-11-16T12:00|s01")


def test_what_is_synced_of_the_newest_closed_windows_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = contract(slices=2)
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    monkeypatch.setitem(LEDGER_URLS, url, SecretStr(url))
    resource = LedgerResource(place=url)
    assert newest_cells(resource, table, 2, utc(2026, 11, 16, 13)) == []
    with resource.open() as ledger:
        facts = table_facts(table, "p")
        known = ledger.register_route(facts)
        ledger.record_schema(known, {"columns": []}, 0)
        leases = ledger.acquire(known, [0, 1], "a run", timedelta(minutes=1))
        hours = [utc(2026, 11, 16, hour) for hour in (9, 10, 11, 12)]
        cells = [
            CellKey.of_window(hour, hour + table.window, part) for hour in hours for part in (0, 1)
        ]
        wanted = [Wanted(cell=cell, mode=Mode.COPY, fingerprint="fp") for cell in cells]
        batches = ledger.plan(leases, utc(2026, 11, 16, 13), 1, wanted, "run")
        # The last but two has not come to its end.
        done = [
            (batch, CellResult(read=1, written=1, unchanged=0, quarantined=0, digest="d"))
            for batch in (*batches[:5], *batches[6:])
        ]
        ledger.commit_cells(leases, done)
    newest = newest_cells(resource, table, 2, utc(2026, 11, 16, 13, 0))  # 12:00 is not settled yet
    assert [cell.key for cell in newest] == [
        "2026-11-16T10:00|s00",
        "2026-11-16T10:00|s01",
        "2026-11-16T11:00|s00",
    ]
