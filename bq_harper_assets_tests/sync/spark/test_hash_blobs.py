"""The hashes of many rows in few Spark rows."""

from bq_harper_assets.sync.spark.hash_blobs import (
    bins_per_place,
    unpacked,
)
from bq_harper_assets_tests.sync.diff.test_diff_job import bins


def test_a_place_of_many_rows_is_cut_into_bins() -> None:
    rows = [(number, 1) for number in range(31)]
    sizes = [len(unpacked(bin_["ids"])) for bin_ in bins(rows, [], 3).values()]
    assert len(sizes) == 3
    assert sum(sizes) == 31
    assert [bins_per_place(rows) for rows in (0, 999_999, 1_000_000, 5_000_000)] == [1, 1, 2, 6]
