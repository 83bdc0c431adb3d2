"""The modules that decide, each with the files of its unit tests.

Of a module that also fetches, the functions that do are named and left out: they are tested on real
servers. The ledger's verbs and questions are tested on SQLite here; on PostgreSQL, where rows are
locked one by one, they are tested beside.
"""

from typing import NamedTuple


class Decider(NamedTuple):
    """A decider is a module, and the unit tests that hold it."""

    module: str
    tests: str  # names of files, without .py
    fetching: str = ""  # names of functions that are left out


DECIDERS = (
    Decider("instants", "test_instants"),
    Decider("contract/budget", "contract/test_budget"),
    Decider(
        "contract/fields/column_lists",
        "contract/fields/test_column_lists contract/test_json_schema",
    ),
    Decider(
        "contract/fields/quantities",
        "contract/fields/test_quantities contract/test_table contract/test_json_schema",
    ),
    Decider("contract/identifiers", "contract/test_identifiers"),
    Decider("contract/settings/private_files", "contract/settings/test_private_files"),
    Decider(
        "contract/settings/systems",
        "contract/settings/test_systems contract/settings/test_origins",
    ),
    Decider("contract/settings/urls", "contract/settings/test_urls"),
    Decider("contract/sql_text", "contract/test_sql_text"),
    Decider("contract/table", "contract/test_table contract/test_json_schema"),
    Decider("schema/change", "schema/test_change schema/test_changes"),
    Decider("schema/change_words", "schema/test_change_words schema/test_changes"),
    Decider("schema/changes", "schema/test_changes schema/test_change_words schema/test_evolution"),
    Decider("schema/evolution", "schema/test_evolution"),
    Decider("schema/earlier_releases", "schema/test_earlier_releases schema/test_version"),
    Decider("schema/index_strategy", "schema/test_index_strategy"),
    Decider("schema/schema_rules", "schema/test_schema_rules schema/test_evolution"),
    Decider(
        "schema/selection",
        "schema/test_selection schema/test_table_plan stores/harper/test_schema",
    ),
    Decider(
        "schema/table_plan",
        "schema/test_table_plan schema/test_evolution schema/test_version"
        " stores/harper/test_schema",
    ),
    Decider("schema/version", "schema/test_version schema/test_evolution"),
    Decider(
        "ledger/questions/losses",
        "ledger/questions/test_losses ledger/verbs/test_intended_deletes",
    ),
    Decider("ledger/questions/progress", "ledger/questions/test_progress ledger/test_open_windows"),
    Decider(
        "ledger/questions/status",
        "ledger/questions/test_status ledger/test_open_windows"
        " ledger/verbs/test_fingerprint_changes ledger/verbs/test_slice_leases",
    ),
    Decider("ledger/position", "ledger/test_position ledger/verbs/test_positions"),
    Decider(
        "ledger/store/cell_keys",
        "ledger/store/test_cell_keys ledger/test_open_windows"
        " ledger/verbs/test_batch_plans ledger/verbs/test_cell_marks ledger/verbs/test_key_ranges",
    ),
    Decider(
        "ledger/verbs/batch_plans",
        "ledger/verbs/test_batch_plans ledger/store/test_cell_keys"
        " ledger/test_open_windows ledger/verbs/test_cell_marks",
    ),
    Decider(
        "ledger/verbs/cell_commits",
        "ledger/verbs/test_cell_commits ledger/verbs/test_cell_commits_recognised"
        " ledger/test_open_windows"
        " ledger/questions/test_losses ledger/verbs/test_cell_marks",
    ),
    Decider("ledger/verbs/cell_marks", "ledger/verbs/test_cell_marks"),
    Decider("ledger/verbs/claims", "ledger/verbs/test_claims"),
    Decider("ledger/verbs/distrust", "ledger/verbs/test_distrust"),
    Decider("ledger/verbs/fingerprint_changes", "ledger/verbs/test_fingerprint_changes"),
    Decider(
        "ledger/verbs/intended_deletes",
        "ledger/verbs/test_intended_deletes ledger/questions/test_losses",
    ),
    Decider("ledger/verbs/key_ranges", "ledger/verbs/test_key_ranges"),
    Decider("ledger/verbs/positions", "ledger/verbs/test_positions ledger/verbs/test_batch_plans"),
    Decider("ledger/verbs/proofs", "ledger/verbs/test_proofs"),
    Decider("ledger/verbs/quarantine", "ledger/verbs/test_quarantine ledger/test_open_windows"),
    Decider(
        "ledger/verbs/registry",
        "ledger/verbs/test_registry ledger/verbs/test_registry_routes ledger/verbs/test_key_ranges"
        " ledger/verbs/test_slice_counts"
        " ledger/verbs/test_batch_plans ledger/verbs/test_distrust",
    ),
    Decider(
        "ledger/verbs/schema_versions",
        "ledger/verbs/test_schema_versions ledger/verbs/test_schema_versions_numbers"
        " ledger/verbs/test_batch_plans",
    ),
    Decider("ledger/verbs/slice_counts", "ledger/verbs/test_slice_counts"),
    Decider(
        "ledger/verbs/slice_leases",
        "ledger/verbs/test_slice_leases ledger/verbs/test_slice_counts"
        " ledger/verbs/test_distrust ledger/verbs/test_registry",
    ),
    Decider(
        "ledger/verbs/transitions",
        "ledger/verbs/test_batch_plans ledger/verbs/test_cell_commits",
    ),
    Decider("sync/cells/cell", "sync/cells/test_cell sync/cells/test_window"),
    Decider("sync/cells/grid", "sync/cells/test_grid sync/cells/test_window"),
    Decider("sync/cells/slicing", "sync/cells/test_slicing sync/identity/test_row_id"),
    Decider("sync/cells/window", "sync/cells/test_window sync/cells/test_cell"),
    Decider("sync/identity/digest", "sync/identity/test_digest"),
    Decider("sync/identity/occurrences", "sync/identity/test_occurrences"),
    Decider("sync/identity/row_hash", "sync/identity/test_row_hash"),
    Decider("sync/identity/row_id", "sync/identity/test_row_id"),
    Decider("sync/phases", "sync/test_phases"),
    Decider("sync/plan/cell_work", "sync/turn/test_judge sync/plan/test_cell_work"),
    Decider("sync/plan/delete_guard", "sync/plan/test_delete_guard"),
    Decider("sync/plan/shared_columns", "sync/plan/test_shared_columns"),
    Decider("sync/revisit/due_cells", "sync/revisit/test_due_cells"),
    Decider(
        "sync/revisit/horizon", "sync/revisit/test_horizon sync/revisit/test_due_cells", "standing"
    ),
    Decider("sync/revisit/open_window", "sync/revisit/test_open_window"),
    Decider("sync/revisit/pace", "sync/revisit/test_pace sync/revisit/test_due_cells"),
    Decider(
        "sync/revisit/run_requests", "sync/revisit/test_run_requests sync/revisit/test_due_cells"
    ),
    Decider("stores/harper/encoding/key_ids", "sync/identity/test_row_id"),
    Decider(
        "stores/harper/schema",
        "stores/harper/test_schema schema/test_index_strategy"
        " stores/harper/table/test_reserved_names schema/test_evolution",
    ),
    Decider("stores/harper/table/reserved_names", "stores/harper/table/test_reserved_names"),
    Decider(
        "stores/harper/types",
        "stores/harper/test_types stores/harper/reading/test_from_harper"
        " stores/harper/encoding/test_text_forms",
    ),
    Decider("stores/harper/reading/conversions", "stores/harper/reading/test_conversions"),
    Decider("sync/turn/judge", "sync/turn/test_judge"),
    Decider("sync/turn/turn_transaction", "sync/turn/test_turn_transaction"),
    Decider("stores/harper/reading/from_harper", "stores/harper/reading/test_from_harper"),
    Decider("stores/bigquery/errors", "stores/bigquery/test_errors"),
    Decider(
        "stores/bigquery/partition_times",
        "stores/bigquery/test_partition_times",
    ),
    Decider("stores/bigquery/arrival_check", "stores/bigquery/test_arrival_check"),
    Decider(
        "stores/bigquery/calls",
        "stores/bigquery/test_calls_counted stores/bigquery/test_queries_answered_by_hand",
    ),
    Decider(
        "stores/bigquery/client",
        "stores/bigquery/test_client stores/bigquery/test_read_session_answered_by_hand",
    ),
    Decider("stores/bigquery/fingerprint", "stores/bigquery/test_fingerprint_answered_by_hand"),
    Decider("stores/bigquery/key_lookup", "stores/bigquery/test_key_lookup_answered_by_hand"),
    Decider(
        "stores/bigquery/materialised_query",
        "stores/bigquery/test_materialised_query_answered_by_hand",
    ),
    Decider("stores/bigquery/row_text", "stores/bigquery/test_row_text_in_sql"),
    Decider("stores/bigquery/schema", "stores/bigquery/test_schema"),
    Decider("stores/bigquery/source", "stores/bigquery/test_source_answered_by_hand"),
    Decider(
        "stores/bigquery/types",
        "stores/bigquery/test_types stores/bigquery/test_row_text_in_sql"
        " stores/bigquery/test_arrival_check stores/bigquery/test_schema",
    ),
    Decider("stores/bigquery/restriction", "stores/bigquery/test_restriction"),
    Decider("retries/breaker", "retries/test_breaker"),
    Decider("stores/harper/answers", "stores/harper/test_answers_read"),
    Decider("stores/harper/table/ensure_table", "stores/harper/table/test_ensure_table"),
    Decider("stores/harper/table/fitting", "stores/harper/table/test_fitting"),
    Decider("retries/retry", "retries/test_retry"),
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
    Decider(
        "validation/proof/cell_proof",
        "validation/proof/test_cell_proof_judged validation/proof/test_proof_records",
    ),
    Decider(
        "validation/proof/proof_records", "validation/proof/test_proof_records", "record_checks"
    ),
    Decider(
        "validation/proof/table_proof",
        "validation/proof/test_table_proof validation/proof/test_proof_records",
        "check_table",
    ),
    Decider(
        "stores/harper/reading/record_comparison", "stores/harper/reading/test_record_comparison"
    ),
    Decider("validation/schema_drift", "validation/test_schema_drift"),
    Decider("validation/spot/sampled_cells", "validation/spot/test_sampled_cells"),
    Decider("validation/spot/spot_verdict", "validation/spot/test_spot_verdict_of_rows"),
    Decider("validation/verdict", "validation/test_verdict"),
    Decider("cli/exit_codes", "cli/test_exit_codes"),
    Decider("routes/bigquery_to_harper", "routes/test_bigquery_to_harper", "target"),
    Decider("cli/output/aligned_columns", "cli/output/test_aligned_columns"),
    Decider("cli/output/equality", "cli/output/test_equality"),
    Decider("ledger/records", "ledger/test_records"),
    Decider("validation/subject", "validation/test_subject validation/test_subject_of_ledger"),
    Decider("validation/smoke", "validation/test_smoke_in_words"),
    Decider(
        "validation/adopt/adoption_check",
        "validation/adopt/test_adoption_check validation/adopt/test_adoption_check_of_tables",
    ),
    Decider("defs/tables/materialisations", "defs/tables/test_materialisations"),
    Decider(
        "defs/checks/deep_proofs",
        "defs/checks/test_deep_proofs defs/checks/test_deep_proofs_by_notes",
        "build_deep_proof_job prove_deeply deep_proof look_for_lost_rows _told",
    ),
    Decider("cli/output/run_results", "cli/output/test_run_results"),
    Decider("cli/output/status_text", "cli/output/test_status_text"),
    Decider("cli/output/sync_summary", "cli/output/test_sync_summary"),
    Decider("cli/output/windows_text", "cli/output/test_windows_text"),
    Decider("cli/runs/asked_cells", "cli/runs/test_asked_cells"),
    Decider("defs/partitions", "defs/test_partitions defs/test_partitions_ranges"),
    Decider("stores/harper/conditions", "stores/harper/test_conditions"),
    Decider("stores/harper/encoding/column_values", "stores/harper/encoding/test_column_values"),
    Decider(
        "stores/harper/encoding/intervals_and_ranges",
        "stores/harper/encoding/test_intervals_and_ranges",
    ),
    Decider("stores/harper/encoding/request_body", "stores/harper/encoding/test_request_body"),
    Decider(
        "stores/harper/encoding/row_plan",
        "stores/harper/encoding/test_row_plan stores/harper/encoding/test_row_plan_of_tables",
    ),
    Decider(
        "stores/harper/encoding/text_forms",
        "stores/harper/encoding/test_text_forms stores/harper/encoding/test_text_forms_both_ways",
    ),
    Decider("stores/harper/encoding/times", "stores/harper/encoding/test_times"),
    Decider(
        "stores/harper/lease/full_reconcile", "stores/harper/lease/test_full_reconcile_in_small"
    ),
    Decider("stores/harper/lease/lease_mirror", "stores/harper/lease/test_lease_mirror"),
    Decider(
        "stores/harper/lease/ledger_agreement",
        "stores/harper/lease/test_ledger_agreement_in_small",
    ),
    Decider("stores/harper/lease/send_deadline", "stores/harper/lease/test_send_deadline_in_small"),
    Decider("stores/harper/mirror/checkpoints", "stores/harper/mirror/test_checkpoints_in_small"),
    Decider(
        "stores/harper/mirror/plugin_checkpoints", "stores/harper/mirror/test_plugin_checkpoints"
    ),
    Decider("stores/harper/mirror/schemas", "stores/harper/mirror/test_schemas"),
    Decider("stores/harper/mirror/tables", "stores/harper/mirror/test_tables_in_small"),
    Decider(
        "stores/harper/reading/target_rows",
        "stores/harper/reading/test_target_rows stores/harper/reading/test_target_rows_read",
    ),
    Decider(
        "stores/harper/reading/target_times",
        "stores/harper/reading/test_target_times stores/harper/reading/test_target_times_as_texts",
    ),
    Decider("sync/ledger_facts", "sync/test_ledger_facts"),
    Decider("sync/moved/gone_or_moved", "sync/moved/test_gone_or_moved_in_small"),
    Decider("sync/moved/previous_cells", "sync/moved/test_previous_cells_in_small"),
    Decider("sync/plan/recomputed_fingerprints", "sync/revisit/test_changed_windows"),
    Decider("sync/revisit/changed_open_window", "sync/revisit/test_changed_open_window"),
    Decider("sync/source/cell_rows", "sync/source/test_cell_rows"),
    Decider("sync/spark/hash_blobs", "sync/spark/test_hash_blobs_packed"),
    Decider("sync/spark/receipts", "sync/spark/test_receipts_merged sync/spark/test_receipts"),
    Decider("sync/plan/retention", "sync/plan/test_retention"),
)
