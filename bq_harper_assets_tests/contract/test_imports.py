"""Contracts load fast and alone: a command that reads them does not wait for Dagster or Spark."""

import subprocess
import sys
import time
from pathlib import Path

from bq_harper_assets.contract.project import load_project

ROOT = Path(__file__).parents[2]


def test_reading_contracts_imports_no_heavy_library() -> None:
    code = (
        "import sys, bq_harper_assets.contract.project, bq_harper_assets.contract.json_schema\n"
        "heavy = {'dagster', 'google', 'pyspark', 'pyarrow', 'numpy'}\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_three_tables_load_well_under_a_tenth_of_a_second() -> None:
    load_project(ROOT, environ={}, profile="local")
    best = min(_timed() for _ in range(5))
    assert best < 0.1


def _timed() -> float:
    start = time.process_time()
    load_project(ROOT, environ={}, profile="local")
    return time.process_time() - start
