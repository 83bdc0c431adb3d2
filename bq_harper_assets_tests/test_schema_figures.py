"""The schema figures of the documentation are those of a run, and good."""

import json

import pytest

from benchmarks.rounds import RESULTS
from benchmarks.schema_table import block, on_page

KEPT = json.loads((RESULTS / "schema_figures.json").read_text(encoding="utf-8"))


@pytest.mark.promise("F6")
def test_the_page_shows_the_figures_of_the_last_run() -> None:
    assert on_page()[1] == block(KEPT)


@pytest.mark.promise("F6")
def test_the_last_run_made_one_schema_lost_nothing_and_saw_changes_in_time() -> None:
    race, drift, types = KEPT["race"], KEPT["drift"], KEPT["type_change"]
    assert race["processes"] >= 10
    assert (race["errors"], race["columns_lost"], race["schemas_at_the_end"]) == (0, 0, 1)
    assert (types["rows_lost"], types["values_lost"]) == (0, 0)
    assert types["versions_recorded_by_the_next_sync"] == 1
    assert drift["first_waits_min"] == [5, 5, 5, 7.5, 11.25, 16.875, 25.3125, 30, 30]
    assert drift["seen_at_most_min_idle"] <= 30
    assert drift["seen_at_most_min_after_a_change"] <= 5
    assert drift["calls_a_look"] == 1
