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
    Decider("schema/changes", "schema/test_changes schema/test_change_words schema/test_evolution"),
    Decider("sync/values/from_harper", "sync/values/test_from_harper"),
    Decider("schema/index_strategy", "schema/test_index_strategy"),
    Decider("stores/bigquery/errors", "stores/bigquery/test_errors"),
    Decider(
        "stores/bigquery/partition_times",
        "stores/bigquery/test_partition_times",
        "partition_times",
    ),
    Decider("stores/breaker", "stores/test_breaker"),
    Decider("stores/retry", "stores/test_retry"),
    Decider("sync/cells/cell", "sync/cells/test_cell sync/cells/test_window"),
    Decider("sync/cells/grid", "sync/cells/test_grid sync/cells/test_window"),
    Decider("sync/cells/slicing", "sync/cells/test_slicing sync/identity/test_row_id"),
    Decider("sync/cells/window", "sync/cells/test_window"),
    Decider("sync/phases", "sync/test_phases"),
    Decider("sync/plan/delete_guard", "sync/plan/test_delete_guard"),
    Decider("sync/plan/cell_work", "sync/turn/test_judge"),
    Decider("sync/turn/judge", "sync/turn/test_judge"),
    Decider("sync/revisit/due_cells", "sync/revisit/test_due_cells"),
    Decider(
        "sync/revisit/horizon", "sync/revisit/test_horizon sync/revisit/test_due_cells", "standing"
    ),
    Decider("sync/revisit/open_window", "sync/revisit/test_open_window"),
    Decider("sync/revisit/pace", "sync/revisit/test_pace sync/revisit/test_due_cells"),
    Decider(
        "sync/revisit/run_requests", "sync/revisit/test_run_requests sync/revisit/test_due_cells"
    ),
    Decider(
        "validation/progress/due_rows",
        "validation/progress/test_due_rows validation/progress/test_progress_check_by_facts",
        "sql __str__ source_now waiting_rows waiting_in _waiting _utc",
    ),
    Decider(
        "validation/progress/progress_check",
        "validation/progress/test_progress_check_by_facts",
        "check_progress _judged _message _verdict",
    ),
    Decider("validation/record_comparison", "validation/test_record_comparison"),
    Decider("validation/verdict", "validation/test_verdict"),
)
