"""Each kind of disorder does exactly what it says, to exactly as many rows as asked."""

from collections import Counter
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.maritime.disorder import (
    DELETE,
    DUPLICATE,
    FUTURE,
    LATE,
    MOVE,
    NULL,
    TIE,
    UPDATE,
    Disorder,
    DisorderTooLarge,
)
from bq_harper_assets.maritime.initialize import SCENARIOS, Sample, sized
from bq_harper_assets.maritime.reports import DAY, microseconds

END = microseconds(datetime(2026, 11, 16, 12, 0, tzinfo=UTC))
THOUSAND = sized(SCENARIOS["realistic"], rows=1_000)


def loaded(**disorder: float) -> tuple[Sample, Any]:
    """A sample of a thousand rows and what its first load holds."""
    made = Sample(THOUSAND, 7, END, Disorder(**disorder))
    return made, pa.concat_tables(list(made.positions()))


def stamps(table: Any) -> np.ndarray:
    return table["timestamp"].cast(pa.int64()).to_numpy()


def numbers(made: Sample, kind: int) -> np.ndarray:
    return made.reports.of_kind(np.arange(1_000), kind)


TIDY = loaded()[1]


@pytest.mark.promise("K8")
@pytest.mark.parametrize(("asked", "count"), [(0.05, 50), (1, 1), (37, 37), (0.5, 500)])
def test_late_rows_are_missing_from_the_first_load_and_nothing_else_is(
    asked: float, count: int
) -> None:
    made, table = loaded(late=asked)
    late = numbers(made, LATE)
    assert len(late) == count
    assert table.num_rows == 1_000 - count
    together = pa.concat_tables([table, made.reports.rows(late)]).sort_by("timestamp")
    assert together.equals(TIDY.combine_chunks())
    assert stamps(made.reports.rows(late)).min() < stamps(table).max()


@pytest.mark.promise("K8")
def test_tied_rows_share_their_timestamp_with_one_other_vessel_and_are_where_it_says() -> None:
    made, table = loaded(ties=0.1)
    counts = Counter(stamps(table).tolist())
    assert Counter(counts.values()) == {1: 800, 2: 100}
    pairs = Counter((t, m) for t, m in zip(stamps(table), table["mmsi"].to_pylist(), strict=True))
    assert set(pairs.values()) == {1}
    assert (np.diff(stamps(table)) >= 0).all()
    assert len(numbers(made, TIE)) == 100


@pytest.mark.promise("K8")
def test_duplicates_are_equal_in_every_column_and_nothing_else_changes() -> None:
    made, table = loaded(duplicates=0.03)
    rows = Counter(tuple(row.items()) for row in table.to_pylist())
    assert Counter(rows.values()) == {1: 970, 2: 30}
    assert set(rows) == {tuple(row.items()) for row in TIDY.to_pylist()}
    assert len(numbers(made, DUPLICATE)) == 30


@pytest.mark.promise("K8")
def test_rows_without_timestamp_keep_everything_else() -> None:
    made, table = loaded(nulls=12)
    assert table["timestamp"].null_count == 12
    assert table.schema.field("timestamp").nullable
    assert not TIDY.schema.field("timestamp").nullable
    assert table.drop_columns(["timestamp"]).equals(TIDY.drop_columns(["timestamp"]))
    assert len(numbers(made, NULL)) == 12


@pytest.mark.promise("K8")
def test_future_rows_are_a_year_ahead() -> None:
    made, table = loaded(futures=0.02)
    ahead = stamps(table) - stamps(TIDY)
    assert Counter(ahead.tolist()) == {0: 980, 365 * DAY: 20}
    assert len(numbers(made, FUTURE)) == 20


@pytest.mark.promise("K8")
def test_rows_to_be_changed_after_the_load_are_in_it_unchanged() -> None:
    made, table = loaded(updates=7, moves=0.005, deletes=0.3)
    assert table.equals(TIDY)
    assert [len(numbers(made, kind)) for kind in (UPDATE, MOVE, DELETE)] == [7, 5, 300]


def disorder_of(counts: list[int]) -> Disorder:
    """So many rows of each kind, in the order of the fields."""
    return Disorder(**dict(zip((field.name for field in fields(Disorder)), counts, strict=True)))


@settings(deadline=None, max_examples=60)
@given(
    counts=st.lists(st.integers(0, 9), min_size=8, max_size=8),
    rows=st.integers(150, 400),
    lap=st.integers(0, 40_000_000),
    seed=st.integers(0, 2**63 - 1),
)
def test_kinds_never_overlap_and_spare_every_second_row(
    counts: list[int], rows: int, lap: int, seed: int
) -> None:
    number = np.arange(rows, dtype=np.int64) + lap * rows
    kinds = disorder_of(counts).kinds(seed, rows, number)
    assert np.bincount(kinds, minlength=9)[1:].tolist() == counts
    assert (kinds[1::2] == 0).all()
    assert kinds[-1] == 0


def test_a_share_too_small_for_one_batch_still_holds_over_many() -> None:
    number = np.arange(100 * 1_000, dtype=np.int64)
    assert (Disorder(late=0.0025).kinds(7, 100, number) == LATE).sum() == 250


def test_more_disorder_than_half_of_the_rows_is_refused() -> None:
    with pytest.raises(DisorderTooLarge) as refused:
        loaded(late=0.3, deletes=250)
    assert str(refused.value) == (
        "of 1,000 rows at most half (500) can be disordered, and 300 late, 250 deletes were asked"
        " for. Nothing was written; ask for fewer, or for more rows."
    )
