"""Which errors are there, and which of them say that the same work may succeed later."""

import ast
from pathlib import Path

import bq_harper_assets
from bq_harper_assets.errors import BqhError, TransientError
from bq_harper_assets.stores.bigquery.errors import BigQueryRefused, ReadSessionLost
from bq_harper_assets.sync import errors as sync_errors
from bq_harper_assets.sync.spark.receipts import error_of, failure_of

PACKAGE = Path(bq_harper_assets.__file__).parent
TRANSIENT = {
    "BigQueryBusy",
    "BigQueryUnavailable",
    "CircuitOpen",
    "HarperGarbled",
    "HarperIndexing",
    "HarperUnavailable",
    "IndexNotReady",
    "LeaseHeld",
    "LeaseLost",
    "LeaseRanOut",
    "LedgerUnavailable",
    "NotComparedYet",
    "ReadSessionLost",
    "SchemaMoved",
    "SourceSchemaMoved",
    "NotAllStaged",
    "SparkGaveUp",
    "SparkIsGone",
    "SplitsLost",
    "TargetMoved",
}


def _descendants(base: str, folder: Path = PACKAGE) -> set[str]:
    """Every class below `folder` that descends from `base`: by name, which has one home."""
    bases = {
        node.name: {each.id for each in node.bases if isinstance(each, ast.Name)}
        for file in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    }
    found = {base}
    while more := {name for name, above in bases.items() if above & found} - found:
        found |= more
    return found - {base}


def test_exactly_these_errors_are_transient() -> None:
    assert _descendants(TransientError.__name__) == TRANSIENT


def test_every_error_of_sync_is_in_its_tree() -> None:
    tree = sync_errors.__doc__ or ""
    defined = _descendants("SyncError", PACKAGE / "sync")
    assert {name for name in defined if not hasattr(sync_errors, name)} == set()
    for name in sorted(defined):
        is_marked = any(f"─ {name} *" in line for line in tree.splitlines())
        assert f"─ {name} " in tree, f"{name} is missing in the docstring of sync/errors.py"
        assert is_marked == (name in TRANSIENT), f"{name} * in the docstring of sync/errors.py"
    outside = _descendants(BqhError.__name__, PACKAGE / "sync") - defined
    assert outside == {"SyncError"}


def test_a_task_tells_the_driver_whether_its_error_may_heal() -> None:
    lost, refused = ReadSessionLost("the session is gone"), BigQueryRefused("no such column")
    assert failure_of(lost).is_transient
    assert failure_of(lost).lost_splits
    assert isinstance(error_of(failure_of(lost)), TransientError)
    assert not failure_of(refused).is_transient
    assert not isinstance(error_of(failure_of(refused)), TransientError)
    late = ReadSessionLost("the session is gone")
    late.is_out_of_time = True
    assert not failure_of(late).is_transient
