"""The modules that decide, each with the files of its unit tests.

Of a module that also fetches, the functions that do are named and left out: they are tested on real
servers.
"""

from typing import NamedTuple


class Decider(NamedTuple):
    """A decider is a module, and the unit tests that hold it."""

    module: str
    tests: str  # names of files, without .py
    fetching: str = ""  # names of functions that are left out


DECIDERS = (
    Decider("contract/identifiers", "contract/test_identifiers"),
    Decider("schema/changes", "schema/test_changes schema/test_evolution"),
    Decider("schema/from_harper", "schema/test_from_harper"),
    Decider("schema/index_strategy", "schema/test_index_strategy"),
    Decider("stores/bigquery/errors", "stores/test_bigquery_errors"),
    Decider(
        "stores/bigquery/partition_times",
        "stores/test_bigquery_partition_times",
        "partition_times",
    ),
    Decider("stores/breaker", "stores/test_breaker"),
    Decider("stores/retry", "stores/test_retry"),
    Decider("sync/cells/cell", "sync/test_windows"),
    Decider("sync/cells/grid", "sync/test_grid sync/test_windows"),
    Decider("sync/cells/slicing", "sync/test_slices sync/test_row_ids"),
    Decider("sync/cells/window", "sync/test_windows"),
    Decider("sync/phases", "sync/test_phases"),
    Decider("sync/plan/delete_guard", "sync/test_guard"),
    Decider("sync/plan/cell_work", "sync/test_judge"),
    Decider("sync/turn/judge", "sync/test_judge"),
    Decider("sync/revisit/due_cells", "sync/test_due"),
    Decider("sync/revisit/horizon", "sync/test_due", "standing"),
    Decider("sync/revisit/open_window", "sync/test_live"),
    Decider("sync/revisit/pace", "sync/test_due"),
    Decider("sync/revisit/run_requests", "sync/test_due"),
    Decider(
        "validation/progress/due_rows",
        "validation/test_progress_facts",
        "sql __str__ source_now waiting_rows waiting_in _waiting _utc",
    ),
    Decider(
        "validation/progress/progress_check",
        "validation/test_progress_facts",
        "check_progress _judged _message _verdict",
    ),
    Decider("validation/record_comparison", "validation/test_compare"),
    Decider("validation/verdict", "validation/test_verdict"),
)
