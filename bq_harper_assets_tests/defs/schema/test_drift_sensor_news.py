"""What the drift sensor tells of a table, once, and what its cursor leaves to the next tick."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from dagster import DagsterInstance, DagsterRunStatus, job

from bq_harper_assets.defs.names import evolve_job
from bq_harper_assets.defs.schema.drift_sensor import DriftCursor, News, Told, look_figures
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.records import NewestVersion
from bq_harper_assets.ledger.verbs.audit import Note
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets.sync.schema_sync.drift import LOOK_EVERY, LastLook
from bq_harper_assets.validation.schema_drift import DriftVerdict
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.schema.samples import contract
from bq_harper_assets_tests.schema.versions import seen
from bq_harper_assets_tests.validation.committed import DAY, MINUTE

ORDERS = contract(key=("number",))
SPEED = Column(name="speed", kind=Kind.FLOAT64)


@job
def evolve_orders() -> None:
    """Named as the job of the table is."""


class Table:
    """A table whose versions are recorded, and what a sensor has told of it."""

    def __init__(self, ledger: Ledger, instance: DagsterInstance) -> None:
        self.ledger, self.instance = ledger, instance
        self.route = ledger.register_route(table_facts(ORDERS, "p"))
        self.version: TableVersion | None = None
        self.told: dict[str, Told] = {}

    def record(self, number: int, *columns: Column, is_applied: bool = True) -> None:
        self.version = seen(self.version, *columns)
        self.ledger.record_schema(self.route, self.version.body(), number - 1)
        if is_applied:
            note = Note("schema", f"version {number}", "applied", {})
            self.ledger.record_audit(self.route, note)

    def news(self, problem: str | None = None, *, was_looked_at: bool = True) -> News:
        found = News(instance=self.instance, ledger=self.ledger, told=self.told)
        found.gather(ORDERS, problem, lambda verdict: {}, was_looked_at=was_looked_at)
        for each in found.versions:
            self.instance.report_runless_asset_event(each)
        return found


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    with (
        open_ledger(empty_ledger(tmp_path / "ledger.db")) as ledger,
        DagsterInstance.ephemeral() as instance,
    ):
        yield Table(ledger, instance)


def versions(news: News) -> list[object]:
    return [each.metadata["schema_version"].value for each in news.versions]


def test_a_table_that_was_never_synced_is_no_news(table: Table) -> None:
    news = table.news()
    assert (news.checks, news.versions, news.requests, table.told) == ([], [], [], {})


def test_a_change_is_told_once_and_a_run_is_asked_for_that_shows_it(table: Table) -> None:
    table.record(1)
    first = table.news()
    assert [each.passed for each in first.checks] == [True]
    assert (versions(first), first.requests) == ([1], [])
    assert table.told[ORDERS.id].version == table.told[ORDERS.id].shown == 1
    table.record(2, SPEED, is_applied=False)
    found = table.news()
    [check] = found.checks
    assert not check.passed
    assert found.said == [f"Orders: {check.description}"]
    [request] = found.requests
    assert (request.run_key, request.job_name) == ("orders-2", evolve_job(ORDERS))
    assert versions(found) == []  # the newest is left to the run
    assert (table.told[ORDERS.id].version, table.told[ORDERS.id].shown) == (2, 1)
    again = table.news()
    assert (again.checks, again.requests) == ([], [])


def test_a_version_that_a_sync_has_applied_is_shown_by_the_sensor(table: Table) -> None:
    table.record(1)
    table.news()
    table.record(2, SPEED)
    news = table.news()
    assert (versions(news), news.requests) == ([2], [])
    assert not table.news().versions


def test_while_a_run_follows_a_version_it_is_left_to_that_run(table: Table) -> None:
    table.record(1)
    table.news()
    table.record(2, SPEED)
    run = table.instance.create_run_for_job(evolve_orders, status=DagsterRunStatus.STARTED)
    assert versions(table.news()) == []
    table.instance.report_run_failed(run)
    assert versions(table.news()) == [2]


def test_a_problem_is_told_and_what_was_told_stands_until_a_look_finds_it_settled(
    table: Table,
) -> None:
    table.record(1)
    table.news()
    [check] = table.news("the type of speed has changed").checks
    assert (check.passed, check.description) == (False, "the type of speed has changed")
    assert table.news(was_looked_at=False).checks == []
    [settled] = table.news().checks
    assert settled.passed


def test_a_table_is_behind_if_dagster_lacks_its_newest_version_or_what_it_shows(
    table: Table,
) -> None:
    newest = NewestVersion(2, DAY)
    news = News(instance=table.instance, ledger=table.ledger, told={})
    assert not news.is_behind(ORDERS, None)
    assert news.is_behind(ORDERS, newest)
    for told, is_behind in ((Told(version=2, shown=1), True), (Told(version=2, shown=2), False)):
        news.told[ORDERS.id] = told
        assert news.is_behind(ORDERS, newest) == is_behind


def test_a_cursor_that_was_lost_goes_on_with_the_look_that_all_know() -> None:
    last = LastLook(at=DAY, tables=("orders",))
    begun = DriftCursor().begun(DAY + MINUTE, last)
    assert (begun.next_look, begun.last_look) == (DAY + LOOK_EVERY, DAY)
    alone = DriftCursor().begun(DAY, None)
    assert (alone.next_look, alone.last_look) == (DAY + LOOK_EVERY, None)


def test_a_look_that_was_put_off_for_longer_is_brought_forward() -> None:
    late = DriftCursor(last_look=DAY, next_look=DAY + 10 * LOOK_EVERY)
    assert late.next_look == DAY + LOOK_EVERY
    soon = DriftCursor(last_look=DAY, next_look=DAY + MINUTE)
    assert soon.next_look == DAY + MINUTE


WRONG = DriftVerdict(message="speed added", passed=False)


@pytest.mark.parametrize(
    ("before", "verdict", "seconds"),
    [
        (DAY - timedelta(seconds=90), WRONG, 90.0),
        (DAY, WRONG, None),
        (None, WRONG, None),
        (DAY - MINUTE, DriftVerdict(message="fine"), None),
    ],
)
def test_a_change_is_told_with_how_late_at_worst_it_was_seen(
    before: object, verdict: DriftVerdict, seconds: float | None
) -> None:
    figures = look_figures(3, DAY, before, verdict)  # type: ignore[arg-type]
    late = {} if seconds is None else {"drift_detection_seconds": seconds}
    assert figures == {"metadata_calls": 3, **late}
