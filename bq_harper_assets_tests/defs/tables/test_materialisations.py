"""The figures that a materialisation of a cell shows."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from dagster import DagsterEventType, DagsterInstance, OpExecutionContext, job, op

from bq_harper_assets.defs.names import NOT_SYNCED, target_key
from bq_harper_assets.defs.runs.launch import QUIET
from bq_harper_assets.defs.tables.materialisations import (
    cell_metadata,
    column_schema,
    record_done,
    rows_held,
)
from bq_harper_assets.instants import micros_at
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.records import CellResult, Mode
from bq_harper_assets.schema.change import Change, ChangeKind
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.phases import Phase
from bq_harper_assets.sync.protocols import TableAction
from bq_harper_assets.sync.turn.report import CellReport, TurnReport
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.schema.samples import schema
from bq_harper_assets_tests.validation.committed import DAY, MINUTE, committed, ships

RESULT = CellResult(
    read=1,
    written=2,
    unchanged=3,
    quarantined=4,
    digest="digest",
    deleted=5,
    moved=6,
    flagged=7,
    kept=8,
    bytes=9,
)


def cell_report(minute: int = 0, upto: float = 5, **changes: object) -> CellReport:
    start = DAY + minute * MINUTE
    report = CellReport(
        cell=Cell(Window(start, start + 5 * MINUTE), 0),
        mode=Mode.COPY,
        batch=10,
        result=RESULT,
        problem=None,
        upto=micros_at(start + upto * MINUTE),
    )
    return replace(report, **changes)  # type: ignore[arg-type]


def report_of(*cells: CellReport) -> TurnReport:
    return TurnReport(
        table="orders",
        t=DAY + 9 * MINUTE,
        phase=Phase.CATCHUP,
        table_action=TableAction.CREATED,
        schema_version=11,
        cells=cells,
        requests=12,
        retries=13,
        seconds=14.00049,
        bytes_read=15,
        bytes_billed=16,
    )


def test_each_figure_has_its_own_name() -> None:
    known, done = ships(), cell_report()
    found = cell_metadata(known, report_of(done), done, 99)
    figures = {name: value for name, value in found.items() if name.startswith(("rows_", "bytes"))}
    assert figures == {
        "rows_read": 1,
        "rows_written": 2,
        "rows_unchanged": 3,
        "rows_quarantined": 4,
        "rows_deleted": 5,
        "rows_moved": 6,
        "rows_flagged": 7,
        "rows_kept": 8,
        "bytes_sent": 9,
        "bytes_read_of_run": 15,
        "bytes_billed_of_run": 16,
    }
    assert (found["batch"], found["schema_version"]) == (10, 11)
    assert (found["requests_of_run"], found["retries_of_run"]) == (12, 13)
    assert (found["seconds_of_run"], found["dagster/partition_row_count"]) == (14.0, 99)
    assert (found["mode"], found["phase"], found["digest"]) == ("copy", "catchup", "digest")
    assert (found["window"], found["synced_upto"]) == ("closed", "2026-01-05T00:05:00+00:00")
    assert found["snapshot"] == "2026-01-05T00:09:00+00:00"
    assert found["table_action"] == "created"
    assert NOT_SYNCED not in found


def test_an_open_window_says_until_when_and_up_to_where_it_is_synced() -> None:
    half = cell_report(upto=2.5)
    found = cell_metadata(ships(), report_of(half), half, 0)
    assert found["window"] == "open until 2026-01-05T00:05:00+00:00"
    assert found["synced_upto"] == "2026-01-05T00:02:30+00:00"


def test_columns_that_wait_are_told() -> None:
    waits = Change(
        kind=ChangeKind.ADDED, column="speed", before="", after="INT64", action="waits for you"
    )
    report = replace(report_of(cell_report()), waiting=(waits,))
    found = cell_metadata(ships(), report, cell_report(), 0)
    assert found[NOT_SYNCED] == report.not_synced
    assert "speed" in found[NOT_SYNCED]


def test_columns_are_shown_as_stored_with_their_types_in_the_source() -> None:
    tags = Column(name="tags", kind=Kind.STRING, repeated=True)
    speed = Column(name="speed", kind=Kind.FLOAT64)
    version = harper_plan(ships(key=None), schema(speed, tags)).version
    told = {
        each.name: (each.type, each.description) for each in column_schema(version.columns).columns
    }
    assert told["speed"] == ("Float", "FLOAT64")
    assert told["tags"][1] == "ARRAY<STRING>"
    assert told["event_time"] == ("String", "TIMESTAMP")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(empty_ledger(tmp_path / "ledger.db")) as opened:
        yield opened


def test_a_topped_up_cell_holds_what_its_commit_says_and_others_what_the_run_has_seen(
    ledger: Ledger,
) -> None:
    known = ships()
    whole, topped_up = cell_report(), cell_report(5, mode=Mode.TOPUP)
    report = report_of(whole, topped_up)
    assert rows_held(ledger, known, report) == {whole.cell: 5, topped_up.cell: 5}
    committed(ledger, known, 0, 10, rows=70)
    assert rows_held(ledger, known, report) == {whole.cell: 5, topped_up.cell: 70}


def test_cells_that_are_done_are_recorded_and_those_with_a_problem_are_not() -> None:
    known = ships()
    report = report_of(cell_report(), cell_report(5, problem="Harper was away"), cell_report(10))
    rows = {each.cell: n for n, each in enumerate(report.cells)}

    @op
    def step(context: OpExecutionContext) -> None:
        record_done(context, known, report, rows)

    @job
    def run() -> None:
        step()

    with DagsterInstance.ephemeral() as instance:
        ended = run.execute_in_process(instance=instance, run_config=QUIET)
        logs = instance.all_logs(ended.run_id, of_type=DagsterEventType.ASSET_MATERIALIZATION)
    made = [each.get_dagster_event().step_materialization_data.materialization for each in logs]
    assert [each.partition for each in made] == [report.cells[0].cell.key, report.cells[2].cell.key]
    assert {each.asset_key for each in made} == {target_key(known)}
    counts = [each.metadata["dagster/partition_row_count"].value for each in made]
    assert counts == [0, 2]
