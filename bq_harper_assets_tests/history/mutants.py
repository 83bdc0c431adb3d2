"""Each rule of the protocol broken, and what notices it: tests are worth what they notice."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from bq_harper_assets_tests.history import broken_ledger, broken_rows


@dataclass(frozen=True)
class Mutant:
    """The project with one rule broken."""

    name: str
    apply: Callable[[pytest.MonkeyPatch], None]
    scene: str = ""  # of test_rules
    elsewhere: str = ""  # a directed test that notices it, where no scene can
    argument: str = ""  # why nothing has to
    is_jittery: bool = False  # only a BigQuery whose clock goes back shows it


MUTANTS = (
    Mutant(
        "commit before data",
        broken_ledger.commit_before_data,
        "a_committed_cell_is_not_copied_again",
    ),
    Mutant(
        "no lease check at commit",
        broken_ledger.without_lease_check("commit cells"),
        "a_commit_after_the_lease_was_lost_is_refused",
    ),
    Mutant(
        "takeover without waiting",
        broken_ledger.takeover_without_waiting,
        "a_killed_runs_lease_is_taken_only_when_it_has_expired",
    ),
    Mutant(
        "no deadline on requests",
        broken_ledger.no_deadline,
        "a_run_that_stood_still_past_its_lease_sends_nothing_more",
    ),
    Mutant(
        "deadline by the client's timeout, not by D",
        broken_ledger.deadline_by_client_timeout,
        "a_request_is_not_sent_if_its_effect_may_outlast_the_lease",
    ),
    Mutant(
        "lease given back with unanswered requests",
        broken_ledger.released_unanswered,
        "a_lease_is_not_given_back_while_a_request_is_unanswered",
    ),
    Mutant(
        "newest batch told to Harper only at the end",
        broken_ledger.batch_told_at_the_end,
        elsewhere="sync/test_in_step.py::"
        "test_a_harper_restored_after_a_run_that_did_not_end_well_is_noticed",
    ),
    Mutant(
        "deadline counted from the answer",
        broken_ledger.deadline_from_the_answer,
        "a_deadline_counts_from_when_the_lease_was_asked_for",
    ),
    Mutant(
        "copy though a batch was left planned",
        broken_ledger.modes_by(broken_ledger.copy_over_a_plan),
        "a_cell_that_a_killed_run_may_have_written_is_not_copied",
    ),
    Mutant(
        "copy always",
        broken_ledger.modes_by(broken_ledger.copy_always),
        "a_committed_cell_is_not_copied_again",
    ),
    Mutant(
        "> for >= at a window's start",
        broken_rows.after_the_start,
        "a_row_at_the_very_start_of_a_window_belongs_to_it",
    ),
    Mutant(
        "delete without window test",
        broken_rows.no_window_test,
        "rows_of_other_windows_are_left_alone",
    ),
    Mutant("no lookup before delete", broken_rows.no_lookup, "a_row_that_moved_is_never_absent"),
    Mutant(
        "top-up mark = T", broken_rows.mark_is_t, "a_row_of_the_last_seconds_is_not_taken_for_held"
    ),
    Mutant(
        "T not monotone",
        broken_ledger.t_goes_back,
        "the_snapshot_does_not_go_back",
        is_jittery=True,
    ),
    Mutant(
        "plan without lease check",
        broken_ledger.without_lease_check("plan batches"),
        elsewhere="ledger/test_plans.py::"
        "test_what_a_dead_owner_left_planned_does_not_hold_its_successor_back",
        argument="a plan writes nothing to the target: its requests are stopped by their deadline "
        "and its commit by the lease check",
    ),
    Mutant(
        "schema version may go back",
        broken_ledger.schema_goes_back,
        elsewhere="ledger/test_plans.py::test_the_schema_version_does_not_go_back_within_a_slice",
    ),
    Mutant(
        "hashes of rows count NULLs",
        broken_rows.nulls_are_hashed,
        elsewhere="sync/test_row_hash.py::"
        "test_cuts_and_column_order_and_columns_without_values_change_nothing",
    ),
    Mutant("two T in one run", broken_rows.two_t, "all_that_a_run_reads_is_of_one_instant"),
    Mutant(
        "destination of a moved row not marked",
        broken_rows.unmarked("mark_destinations"),
        "a_cell_that_gets_a_row_from_another_is_marked_first",
    ),
    Mutant(
        "origin of a moved row not marked",
        broken_rows.unmarked("mark_origins"),
        "a_cell_that_loses_a_row_to_another_is_marked_first",
    ),
    Mutant(
        "row outside every window upserted",
        broken_rows.outside_upserted,
        "a_row_that_left_every_window_is_deleted",
    ),
    Mutant(
        "fingerprint per window",
        broken_ledger.fingerprint_per_window,
        "a_fingerprint_is_that_of_the_cells_own_instant",
    ),
    Mutant(
        "fingerprint of later than T",
        broken_rows.fingerprint_of_now,
        "a_change_between_the_instant_and_the_plan_is_not_taken_for_synced",
    ),
    Mutant(
        "fingerprint over the old columns",
        broken_rows.fingerprint_of_old_columns,
        elsewhere="sync/test_evolution.py::"
        "test_a_column_that_goes_leaves_its_values_and_is_synced_again_when_it_returns",
    ),
    Mutant(
        "top-up without a look at what is held",
        broken_rows.topup_unseen,
        "an_open_window_whose_held_part_changed_is_reconciled",
    ),
    Mutant("close by top-up", broken_rows.close_by_topup, "a_window_that_closes_is_reconciled"),
    Mutant(
        "guard before the lookup",
        broken_rows.guard_before_the_lookup,
        "rows_that_only_moved_do_not_alarm_the_guard",
    ),
    Mutant(
        "guard forgets what failed runs took out",
        broken_ledger.failed_deletes_forgotten,
        "what_a_failed_run_took_out_counts_for_the_guard",
    ),
    Mutant(
        "guard looks at others before it says what it deletes",
        broken_rows.guard_before_the_intents,
        "of_two_runs_side_by_side_one_sees_what_the_other_takes_out",
    ),
    Mutant(
        "number of equal rows per stream",
        broken_rows.numbers_per_stream,
        "equal_rows_get_their_numbers_over_all_streams",
    ),
    Mutant(
        "number of equal rows by read order",
        broken_rows.numbers_by_read_order,
        "equal_rows_get_their_numbers_over_all_streams",
    ),
    Mutant(
        "quarantine only grows",
        broken_ledger.quarantine_grows,
        "a_row_that_became_good_leaves_quarantine",
    ),
    Mutant(
        "old version of a quarantined row kept",
        broken_rows.stale_kept,
        "no_old_version_of_a_row_in_quarantine_stays",
    ),
    Mutant(
        "slice of equal rows by their number",
        broken_rows.slice_by_the_number,
        "equal_rows_are_all_in_one_slice",
    ),
    Mutant(
        "rows to keep are deleted",
        broken_rows.kept_rows_deleted,
        "a_row_that_is_gone_is_kept_where_that_is_asked_for",
    ),
    Mutant(
        "flag stays on a row that returns",
        broken_rows.flag_stays,
        "a_row_that_returns_loses_its_flag",
    ),
    Mutant(
        "flag not read back",
        broken_rows.flag_unseen,
        "a_row_that_returns_loses_its_flag",
    ),
)
