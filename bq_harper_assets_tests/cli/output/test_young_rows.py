"""Rows that are younger than what a sync has covered are told, so that nobody looks for them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bq_harper_assets.cli.output.run_results import RunResults
from bq_harper_assets.cli.output.young_rows import young_rows
from bq_harper_assets.defs.runs.launch import Launched
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets_tests.cli.conftest import ByHand
from bq_harper_assets_tests.stores.bigquery.by_hand import Asked, described
from bq_harper_assets_tests.temporary_project import HOUR, hours_ago, table

NOW = datetime.now(UTC)
FIELDS = [{"name": "ts", "type": "TIMESTAMP"}, {"name": "number", "type": "INTEGER"}]


def ran(*upto: datetime, error: str | None = None) -> RunResults:
    done = {str(at): {"synced_upto": each.isoformat()} for at, each in enumerate(upto)}
    return RunResults((Launched("run", done, error),), len(done), 1.0)


def said(by_hand: ByHand, results: RunResults, count: int, **declared: Any) -> list[str]:
    def answer(asked: Asked) -> Sequence[Mapping[str, Any]]:
        is_clock = "CURRENT_TIMESTAMP" in asked.sql
        return [{"now": NOW}] if is_clock else [{"n0": count, "oldest0": NOW if count else None}]

    by_hand.bigquery.answer = answer
    by_hand.bigquery.tables = described("shop", "orders", schema={"fields": FIELDS})
    source = TableRef("p", "shop", "orders")
    known = {"id": "orders", "safetyLag": "90s", **declared}
    project = by_hand.project.declare(table(source, hours_ago(3), **known))
    return list(young_rows(project, project.tables[0], results))


@pytest.mark.parametrize(
    ("live", "told"),
    [
        (True, "1,234 rows are younger than safetyLag (90s) and come next"),
        (False, "1,234 rows lie in the window that is still open and come once it has closed"),
    ],
)
def test_rows_after_the_newest_cell_are_counted_up_to_now(
    by_hand: ByHand, live: bool, told: str
) -> None:
    newest = NOW - timedelta(minutes=5)
    results = ran(NOW - 2 * HOUR, newest, NOW - HOUR)
    assert said(by_hand, results, 1_234, live=live) == [told]
    counting = by_hand.bigquery.asked[-1].sql
    assert f"`ts` >= TIMESTAMP '{newest:%F %T}" in counting
    assert f"`ts` < TIMESTAMP '{NOW:%F %T}" in counting


def test_nothing_is_said_if_there_are_none_or_nobody_can_tell(by_hand: ByHand) -> None:
    assert said(by_hand, ran(NOW - HOUR), 0) == []
    count = len(by_hand.bigquery.asked)
    assert said(by_hand, ran(NOW - HOUR, error="Harper is away"), 5) == []
    assert said(by_hand, ran(), 5) == []
    assert len(by_hand.bigquery.asked) == count
