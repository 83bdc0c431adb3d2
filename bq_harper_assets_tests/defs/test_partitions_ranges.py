"""Dagster asks for a range's keys once per partition: they are right, and made once."""

from datetime import UTC, datetime

from dagster import MultiPartitionsDefinition, PartitionKeyRange

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.partitions import SLICE_DIMENSION, WINDOW_DIMENSION, build_partitions

START = datetime(2026, 1, 5, tzinfo=UTC)
CONTRACT = TableContract(
    id="t", dataset="d", table="t", timestamp_column="ts", target_table="T", slices=3
)
RANGES = (
    PartitionKeyRange("2026-01-05T00:00|s00", "2026-01-05T05:00|s02"),
    PartitionKeyRange("2026-01-05T03:00|s01", "2026-01-05T03:00|s01"),
)


def test_the_keys_of_a_range_are_those_that_dagster_finds_whatever_was_asked_before() -> None:
    partitions = build_partitions(CONTRACT, START)
    plain = MultiPartitionsDefinition(
        {
            name: partitions.get_partitions_def_for_dimension(name)
            for name in (WINDOW_DIMENSION, SLICE_DIMENSION)
        }
    )
    assert partitions == plain
    for asked in (*RANGES, *RANGES):
        found = partitions.get_partition_keys_in_range(asked)
        assert list(found) == list(plain.get_partition_keys_in_range(asked))


def test_a_range_that_is_asked_for_again_is_not_made_again() -> None:
    partitions = build_partitions(CONTRACT, START)
    first = partitions.get_partition_keys_in_range(RANGES[0])
    assert partitions.get_partition_keys_in_range(RANGES[0]) is first
