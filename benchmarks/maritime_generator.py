"""How fast sample positions are made, in rows per second of one core, before any load.

python benchmarks/maritime_generator.py [rows] [vessels]
"""

import sys
import time
from dataclasses import fields
from datetime import UTC, datetime

import pyarrow as pa

from bq_harper_assets.maritime.disorder import Disorder
from bq_harper_assets.maritime.initialize import SCENARIOS, Sample, sized
from bq_harper_assets.maritime.reports import microseconds
from bq_harper_assets.maritime.warehouse import parquet_bytes

END = microseconds(datetime(2026, 11, 16, 12, 0, tzinfo=UTC))


def main(rows: int, vessels: int) -> None:
    """Prints rows per second of processor time, so other work on the machine does not count."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    size = sized(SCENARIOS["stress"], rows, vessels)
    print(f"{rows:,} positions of {vessels:,} vessels, processor time of one core")

    begun = time.process_time()
    plan = Sample(size, 7, END).plan
    print(f"  fleet and itineraries   {time.process_time() - begun:10.2f} s, once")

    mixed = Disorder(**{field.name: 0.01 for field in fields(Disorder)})
    for name, disorder in (("positions", Disorder()), ("with all disorder", mixed)):
        sample = Sample(size, 7, END, disorder)
        assert sample.plan is plan
        begun, made = time.process_time(), 0
        for table in sample.positions():
            made += table.num_rows
        print(f"  {name:<22}  {made / (time.process_time() - begun):10,.0f} rows/s")

    tables = pa.concat_tables(list(Sample(size, 7, END).positions()))
    begun = time.process_time()
    written = len(parquet_bytes(tables))
    spent = time.process_time() - begun
    print(
        f"  Parquet                 {rows / spent:10,.0f} rows/s, {written / rows:.0f} bytes a row"
    )


if __name__ == "__main__":
    arguments = [int(text) for text in sys.argv[1:]]
    main(*(arguments + [1_000_000, 10_000][len(arguments) :]))
