"""What rows that others wrote have in common with those of a sync."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pytest

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.validation.adopt import foreign_rows
from bq_harper_assets.validation.adopt.foreign_rows import (
    StoredSample,
    look_at_rows,
    rows_at_both_ends,
)
from bq_harper_assets.validation.spot import source_sample
from bq_harper_assets_tests.stores.bigquery.by_hand import BigQueryByHand
from bq_harper_assets_tests.stores.memory_harper import client_of, harper_with
from bq_harper_assets_tests.validation.committed import at, ships
from bq_harper_assets_tests.validation.source_in_memory import SourceInMemory

SOURCE = [(1, 1), (1, 2), (2, 3), (6, 4)]


def row(row_id: Any, time: object, number: int | None = None) -> dict[str, Any]:
    """A row of this id, whose number is the same unless another is given."""
    shown = at(time) if isinstance(time, int | float) else time
    return {"id": row_id, "event_time": shown, "number": row_id if number is None else number}


def look(
    rows: Sequence[dict[str, Any]],
    *,
    searchable: bool = True,
    lost: Sequence[Any] = (),
    known: TableContract | None = None,
    in_source: Sequence[tuple[float, int]] = SOURCE,
) -> StoredSample:
    source = SourceInMemory(known or ships(), in_source)
    counts = [{"moment": moment, "n": n} for moment, n in source.counts().items()]
    harper = harper_with({"Orders": rows})
    harper.tables["Orders"].unfindable = set(lost)
    with (
        BigQueryByHand(lambda asked: counts) as service,
        service.queries() as queries,
        client_of(harper) as client,
    ):
        source.queries = queries
        pin: Any = source
        return look_at_rows(client, source.reader(client), pin, rows, searchable=searchable)


def test_rows_are_taken_from_both_ends_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_rows, "ROWS_FROM_EACH_END", 2)
    for count, expected in ((3, [0, 1, 2]), (9, [0, 1, 8, 7])):
        harper = harper_with({"Orders": [row(n, 1) for n in range(count)]})
        with client_of(harper) as client:
            found = rows_at_both_ends(client, "Orders", "id")
        assert [each["id"] for each in found] == expected


NONE = {"equal": 0, "changed": 0, "other_id": 0, "not_in_source": 0, "crowded": 0}


def counts_of(sample: StoredSample) -> dict[str, int]:
    """How many rows were compared, by what came of it."""
    return {name: value for name, value in asdict(sample).items() if name in NONE}


def test_each_row_with_a_time_is_compared_with_the_source() -> None:
    assert counts_of(look([row(1, 1), row(2, 1), row(3, 2)])) == NONE | {"equal": 3}
    assert counts_of(look([row(1, 1, 9), row(2, 1), row(3, 2, 9)])) == NONE | {
        "equal": 1,
        "changed": 2,
    }
    assert counts_of(look([row(77, 2, number=3), row(88, 2)])) == NONE | {
        "other_id": 1,
        "not_in_source": 1,
    }
    strangers = [row(n, 2) for n in (70, 71, 72)]
    assert counts_of(look(strangers)) == NONE | {"not_in_source": 3}
    sample = look([row(5, None)])
    assert (sample.rows, counts_of(sample)) == (1, NONE)
    assert asdict(StoredSample()) == NONE | {"rows": 0, "lost": "", "other_type": ""}


def test_rows_of_a_time_that_too_many_share_are_not_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source_sample, "MOST_SAMPLED_ROWS", 1)
    sample = look([row(1, 1), row(2, 1), row(3, 2)])
    assert counts_of(sample) == NONE | {"equal": 1, "crowded": 2}


def test_equal_rows_of_a_table_without_a_key_have_ids_of_their_own() -> None:
    rows = [(1, 7), (1, 7), (2, 8)]
    for some in (rows[2:], rows):
        sample = look([row("a", 1, 7), row("b", 2, 8)], known=ships(key=None), in_source=some)
        assert counts_of(sample)["other_id"] == 1 + (some is rows)


def test_an_id_of_another_type_is_shown() -> None:
    assert look([row(1, 1), row("2", 1, 2)]).other_type == "'2'"
    assert look([row(1, 1)]).other_type == ""


@pytest.mark.parametrize(
    ("time", "searchable", "lost", "said"),
    [
        ("2026-01-05T00:01:00Z", True, (), ""),  # in another form, and a search finds it
        ("2026-01-05T00:01:00Z", True, (1,), "2026-01-05T00:01:00Z"),
        ("2026-01-05T00:01:00Z", False, (), "2026-01-05T00:01:00Z"),
        ("garbage", True, (), "garbage"),
        (1_767_571_260, True, (), "1767571260"),
        (None, True, (), ""),
    ],
)
def test_a_time_by_which_no_search_finds_its_row_is_shown(
    time: object, searchable: bool, lost: Sequence[int], said: str
) -> None:
    rows = [row(1, None) | {"event_time": time}]
    assert look(rows, searchable=searchable, lost=lost).lost == said
