"""How rows that are due are counted: in few queries, and each range by itself."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.validation.progress import due_rows
from bq_harper_assets.validation.progress.due_rows import Waiting, waiting_in, waiting_rows
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.stores.bigquery.by_hand import PROJECT, Asked, BigQueryByHand
from bq_harper_assets_tests.validation.committed import DAY, MINUTE, ships

RANGES = [(DAY + n * MINUTE, DAY + (n + 5) * MINUTE) for n in (0, 10, 20)]


@contextmanager
def counting(
    tmp_path: Path, rows: dict[datetime, int], **declared: Any
) -> Iterator[tuple[Subject, list[Asked]]]:
    """BigQuery with so many rows at each time, and what it is asked."""

    def answer(asked: Asked) -> list[dict[str, Any]]:
        found: dict[str, Any] = {}
        spans = re.findall(r"COUNTIF\((.*?)\) AS n(\d+)", asked.sql)
        for within, at in spans:
            low, high = (
                DAY + int(hour) * 60 * MINUTE + int(minute) * MINUTE
                for hour, minute in re.findall(r" (\d\d):(\d\d):00", within)
            )
            there = {moment: n for moment, n in rows.items() if low <= moment < high}
            found[f"n{at}"] = sum(there.values())
            found[f"oldest{at}"] = min(there, default=None)
        return [found]

    nobody: Any = None
    with (
        open_ledger(empty_ledger(tmp_path / "ledger.db")) as ledger,
        BigQueryByHand(answer) as service,
        service.queries() as queries,
    ):
        yield Subject(ships(**declared), queries, nobody, ledger), service.asked


def test_each_range_has_its_own_count_whatever_query_it_was_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due_rows, "RANGES_PER_QUERY", 2)
    rows = {DAY: 2, DAY + 4 * MINUTE: 1, DAY + 5 * MINUTE: 9, DAY + 21 * MINUTE: 4}
    with counting(tmp_path, rows) as (subject, asked):
        empty = (DAY, DAY)
        found = waiting_in(subject, [*RANGES, RANGES[0], empty])
        assert found == {
            RANGES[0]: Waiting(3, DAY),
            RANGES[1]: Waiting(0),
            RANGES[2]: Waiting(4, DAY + 21 * MINUTE),
        }
        assert [each.sql.count("COUNTIF(") for each in asked] == [2, 1]
        assert waiting_rows(subject, RANGES) == Waiting(7, DAY)
        assert waiting_rows(subject, RANGES[1:2]) == waiting_rows(subject, []) == Waiting(0)


def test_rows_are_those_that_the_contract_takes(tmp_path: Path) -> None:
    with counting(tmp_path, {}, row_filter="n > 3") as (subject, asked):
        waiting_in(subject, RANGES[:1])
    [query] = asked
    assert f"FROM `{PROJECT}`.`shop`.`orders`" in query.sql
    assert "(n > 3)" in query.sql


def test_rows_of_a_query_are_counted_by_its_time_alone(tmp_path: Path) -> None:
    query = "SELECT * FROM shop.orders"
    declared = {"dataset": None, "table": None, "custom_query": query}
    with counting(tmp_path, {DAY: 1}, **declared) as (subject, asked):
        assert waiting_rows(subject, RANGES) == Waiting(1, DAY)
    [counted] = asked
    assert query in counted.sql
