"""Counts of a job that pass through Spark."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.sync.diff.diff_job import compared_bin
from bq_harper_assets.sync.spark.hash_blobs import (
    receipt_row,
)
from bq_harper_assets.sync.write.write_job import counted_bin, shared_contents


def test_receipts_pass_through_both_counts() -> None:
    rows = pa.Table.from_batches([receipt_row(b"one"), receipt_row(b"two")])
    for found in (counted_bin(rows, 1), compared_bin(rows, 1)):
        assert found.column("receipt").to_pylist() == [b"one", b"two"]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.integers(0, 2)),
        min_size=1,
        max_size=30,
    )
)
def test_contents_whose_id_is_not_theirs_alone_are_counted_by_stream(
    rows: list[tuple[str, int, int]],
) -> None:
    def packed(value: int) -> bytes:
        return np.array([value], np.uint64).tobytes()

    batch = [
        {"bin": 0, "stream": stream, "ids": packed(row_id), "hashes": packed(content)}
        for stream, row_id, content in rows
    ]
    found = shared_contents(pa.Table.from_pylist(batch)).to_pylist()
    ids = [row_id for _, row_id, _ in rows]
    assert len(found) == len({each for each in rows if ids.count(each[1]) > 1})
    assert {tuple(row.values()) for row in found} == {
        (row_id, content, stream, rows.count((stream, row_id, content)))
        for stream, row_id, content in rows
        if ids.count(row_id) > 1
    }
