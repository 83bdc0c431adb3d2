"""From the first row to a proof over a changed schema, on servers that we did not start."""

from datetime import timedelta

import pytest

from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.stores.harper.mirror.tables import SCHEMAS
from bq_harper_assets_tests.cli.typed import told, typed_well
from bq_harper_assets_tests.defs.conftest import Dagster
from bq_harper_assets_tests.defs.drifting import Drifting, LedgerClock
from bq_harper_assets_tests.live.conftest import Live
from bq_harper_assets_tests.temporary_project import hours_ago, table

ROWS = 90
START = hours_ago(3)
SELECT = (
    f"SELECT n AS number, TIMESTAMP_ADD(TIMESTAMP '{START:%F %T}+00', INTERVAL n MINUTE) AS ts,"
    " {speed} AS speed{more} FROM UNNEST(GENERATE_ARRAY(0, " + str(ROWS - 1) + ")) AS n"
)


def _becomes(live: Live, speed: str, more: str = "") -> None:
    live.run(f"CREATE OR REPLACE TABLE T AS {SELECT.format(speed=speed, more=more)}")


def _proved(live: Live, name: str) -> None:
    until = START + timedelta(hours=2)  # all rows, and no window that is still open
    span = ("--from", f"{START:%FT%H:%M}", "--to", f"{until:%FT%H:%M}")
    typed_well("sync", name, *span)
    report = told("verify", name, *span)
    assert report["verdict"] == "equal", report


def test_a_table_is_synced_changed_seen_synced_again_and_proved(live: Live) -> None:
    _becomes(live, "n")
    [ships] = live.declare(table(live.source, START, key=["number"], live=False)).tables
    assert [f["detail"] for f in told("doctor")["findings"] if f["verdict"] == "fail"] == []
    _proved(live, ships.id)

    _becomes(live, "CONCAT('speed ', CAST(n AS STRING))", ", n / 4 AS draught")
    with project_instance(live.project.root) as instance, pytest.MonkeyPatch.context() as patch:
        dagster = Dagster(live.project.root, instance, live.harper)
        sensor = Drifting(dagster=dagster, clock=LedgerClock(patch))
        [request] = sensor.look()
        assert request.run_key == f"{ships.id}-2"
        sensor.run(request)
    _proved(live, ships.id)

    rows = live.harper.search_by_value(ships.target_table, "ts", "*", ("*",))
    assert {row["number"]: (row["speed"], row["speed_v2"], row["draught"]) for row in rows} == {
        n: (n, f"speed {n}", n / 4) for n in range(ROWS)
    }
    versions = live.harper.search_by_value(SCHEMAS.name, "tableId", ships.id, ("version",))
    assert sorted(row["version"] for row in versions) == [1, 2]
