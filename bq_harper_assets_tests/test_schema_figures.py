"""The schema figures of the documentation are those of a run, and a run of today is as good."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rounds import RESULTS
from benchmarks.schema_figures import Size, drift_figures, race_figures, type_figures
from benchmarks.schema_table import block, on_page
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.conftest import Sync, ledger, spark, sync, tables

__all__ = ["ledger", "spark", "sync", "tables"]
KEPT = json.loads((RESULTS / "schema_figures.json").read_text(encoding="utf-8"))
SMALL = Size(processes=3, rows=20, day=timedelta(hours=3))


@pytest.mark.promise("F6")
def test_the_page_shows_the_figures_of_the_last_run() -> None:
    assert on_page()[1] == block(KEPT)


@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.spark
@pytest.mark.promise("F6")
def test_a_run_of_today_makes_one_schema_loses_nothing_and_sees_changes_in_time(
    sync: Sync, tables: SmallTables, stack: StackAddresses, tmp_path: Path
) -> None:
    raced = race_figures(stack, tmp_path, SMALL.processes)
    contract, types = type_figures(sync, tables, SMALL.rows)
    drift = drift_figures(sync, tables, contract, SMALL)
    fresh = {"race": raced, "drift": drift, "type_change": types}
    for figures in (fresh, KEPT):
        assert [what for what, holds in _promised(figures).items() if not holds] == []
    assert KEPT["race"]["processes"] >= 10
    assert (types["rows"], drift["looks_a_day"]) == (2 * SMALL.rows, 36)


def _promised(figures: dict[str, Any]) -> dict[str, bool]:
    """What a run must find, whatever its size."""
    race, drift, types = figures["race"], figures["drift"], figures["type_change"]
    return {
        "errors": race["errors"] == 0,
        "columns lost": race["columns_lost"] == 0,
        "one schema": race["schemas_at_the_end"] == 1,
        "rows and values lost": (types["rows_lost"], types["values_lost"]) == (0, 0),
        "one version": types["versions_recorded_by_the_next_sync"] == 1,
        "seen when idle": drift["seen_at_most_min_idle"] <= 5,
        "calls a look": drift["calls_a_look"] == 1,
    }
