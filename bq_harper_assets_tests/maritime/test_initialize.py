"""A scenario has its rows, and the same ones each time."""

import hashlib
import json

import numpy as np
import pyarrow as pa
import pytest

from bq_harper_assets.maritime.itinerary import SECOND
from bq_harper_assets.maritime.warehouse import parquet_bytes
from bq_harper_assets_tests.maritime.test_reports import END, positions, sample


@pytest.mark.promise("K1")
@pytest.mark.parametrize(
    ("name", "rows", "events", "vessels", "hours"),
    [
        ("small", 100, 10, 20, 1),
        ("realistic", 10_000, 500, 100, 24),
        ("stress", 100_000, 5_000, 1_000, 168),
    ],
)
def test_a_scenario_has_exactly_its_rows_within_its_span(
    name: str, rows: int, events: int, vessels: int, hours: int
) -> None:
    made = sample(name)
    table = positions(made)
    assert (table.num_rows, made.events().num_rows, made.register().num_rows) == (
        rows,
        events,
        vessels,
    )
    assert len(table["mmsi"].unique()) == vessels
    times = table["timestamp"].cast(pa.int64()).to_numpy()
    assert END - hours * 3600 * SECOND <= times[0]
    assert times[-1] < END
    assert times[-1] - times[0] > 0.98 * hours * 3600 * SECOND
    assert (np.diff(times) > 0).all()


@pytest.mark.promise("K2")
def test_same_seed_same_bytes_whatever_the_batches_and_threads() -> None:
    rows = positions(sample("realistic"))
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        again = positions(sample("realistic"), batch=777)
        files = [parquet_bytes(table) for table in (rows, again)]
    finally:
        pa.set_cpu_count(threads)
    assert files[0] == files[1] == parquet_bytes(rows)
    assert parquet_bytes(positions(sample("realistic", seed=8))) != files[0]
    for name in ("register", "events"):
        made, same, other = (getattr(sample("small", seed), name)() for seed in (7, 7, 8))
        assert parquet_bytes(made) == parquet_bytes(same) != parquet_bytes(other)


def test_the_small_scenario_is_the_same_on_every_machine() -> None:
    made = sample("small")
    rows = [made.register().to_pylist(), made.events().to_pylist(), positions(made).to_pylist()]
    text = json.dumps(rows, default=lambda moment: moment.isoformat())
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "0aca3f3bd4c61c14"
