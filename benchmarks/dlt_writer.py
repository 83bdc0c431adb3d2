"""What a user of dlt would write: Arrow rows of a Parquet file into a custom destination.

python benchmarks/dlt_writer.py PARQUET URL FOLDER: prints rows, seconds and processor seconds of
the pipeline's run as JSON. It imports nothing of this project, so that any Python with dlt runs it.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

BATCH_ROWS = 5_000


def main(parquet: str, url: str, folder: str) -> None:
    """One run, from the file to the last answer."""
    # Here and not above: it reads its settings when it is imported.
    os.environ |= {
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "RUNTIME__LOG_LEVEL": "ERROR",
        "DLT_DATA_DIR": folder,
        "DATA_WRITER__DISABLE_COMPRESSION": "true",
    }
    import dlt
    import orjson
    import pyarrow as pa
    import pyarrow.parquet as pq
    import requests

    session = requests.Session()
    written = 0

    @dlt.resource(name="positions")
    def positions() -> Iterator[pa.RecordBatch]:
        yield from pq.ParquetFile(parquet).iter_batches(BATCH_ROWS * 4)

    @dlt.destination(
        batch_size=BATCH_ROWS,
        loader_file_format="parquet",
        name="harper",
        max_parallel_load_jobs=1,
        skip_dlt_columns_and_tables=True,
    )
    def harper(items: pa.RecordBatch, table: Any) -> None:
        nonlocal written
        asked = {"operation": "upsert", "table": "Positions", "records": items.to_pylist()}
        answer = session.post(url, data=orjson.dumps(asked), timeout=60)
        answer.raise_for_status()
        written += items.num_rows

    pipeline = dlt.pipeline("positions", destination=harper, pipelines_dir=folder)
    began, cpu = time.perf_counter(), time.process_time()
    pipeline.run(positions())
    spent = {
        "rows": written,
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
    }
    print(json.dumps(spent))


if __name__ == "__main__":
    main(*sys.argv[1:])
