"""Rows of a query are asked for again in parts, and each part is another one."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bq_harper_assets.instants import micros_at
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.moved import gone_or_moved
from bq_harper_assets.sync.moved.gone_or_moved import find_later
from bq_harper_assets_tests.schema.samples import contract, schema

START = datetime(2026, 1, 5, tzinfo=UTC)
NUMBER = Column(name="number", kind=Kind.INT64)


@dataclass
class Remembered:
    """A source that has every row that it is asked for, and notes which those were."""

    t: datetime = START + timedelta(hours=1)
    asked: list[list[Any]] = field(default_factory=list)

    @property
    def plan(self) -> TablePlan:
        return harper_plan(contract(key=["number"]), schema(NUMBER))

    def times_of_keys(self, keys: Sequence[Any]) -> Mapping[int, int | None]:
        return dict.fromkeys(range(len(keys)), micros_at(START))

    times_of_keys_now = times_of_keys

    @contextmanager
    def asked_again(self, keys: Sequence[Any]) -> Iterator["Remembered"]:
        self.asked.append([number for (number,) in keys])
        yield self


class Numbered:
    """A target whose ids are its keys."""

    def keys_of(self, plan: TablePlan, ids: Sequence[Any]) -> list[Any]:
        return [(number,) for number in ids]


def test_more_rows_than_one_query_names_are_all_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gone_or_moved, "KEYS_AT_ONCE", 2)
    pin: Any = Remembered()
    target: Any = Numbered()
    with ExitStack() as keep:
        found = find_later(pin, target, micros_at(START), [1, 2, 3, 4, 5], keep)
    assert pin.asked == [[1, 2], [3, 4], [5]]
    assert list(found) == [1, 2, 3, 4, 5]
