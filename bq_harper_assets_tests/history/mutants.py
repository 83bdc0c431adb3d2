"""Each rule of the protocol broken, and what notices it: tests are worth what they notice."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from bq_harper_assets_tests.history import broken_ledger, broken_rows, broken_transaction


@dataclass(frozen=True, kw_only=True)
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
        name="commit before data",
        apply=broken_ledger.commit_before_data,
        scene="a_committed_cell_is_not_copied_again",
    ),
    Mutant(
        name="no lease check at commit",
        apply=broken_ledger.without_lease_check("commit cells"),
        scene="a_commit_after_the_lease_was_lost_is_refused",
    ),
    Mutant(
        name="takeover without waiting",
        apply=broken_ledger.takeover_without_waiting,
        scene="a_killed_runs_lease_is_taken_only_when_it_has_expired",
    ),
    Mutant(
        name="no deadline on requests",
        apply=broken_ledger.no_deadline,
        scene="a_run_that_stood_still_past_its_lease_sends_nothing_more",
    ),
    Mutant(
        name="deadline by the client's timeout, not by D",
        apply=broken_ledger.deadline_by_client_timeout,
        scene="a_request_is_not_sent_if_its_effect_may_outlast_the_lease",
    ),
    Mutant(
        name="lease given back with unanswered requests",
        apply=broken_ledger.released_unanswered,
        scene="a_lease_is_not_given_back_while_a_request_is_unanswered",
    ),
    Mutant(
        name="newest batch told to Harper only at the end",
        apply=broken_ledger.batch_told_at_the_end,
        elsewhere="stores/harper/lease/test_ledger_agreement.py::"
        "test_a_harper_restored_after_a_run_that_did_not_end_well_is_noticed",
    ),
    Mutant(
        name="deadline counted from the answer",
        apply=broken_ledger.deadline_from_the_answer,
        scene="a_deadline_counts_from_when_the_lease_was_asked_for",
    ),
    Mutant(
        name="copy though a batch was left planned",
        apply=broken_ledger.modes_by(broken_ledger.copy_over_a_plan),
        scene="a_cell_that_a_killed_run_may_have_written_is_not_copied",
    ),
    Mutant(
        name="copy always",
        apply=broken_ledger.modes_by(broken_ledger.copy_always),
        scene="a_committed_cell_is_not_copied_again",
    ),
    Mutant(
        name="> for >= at a window's start",
        apply=broken_rows.after_the_start,
        scene="a_row_at_the_very_start_of_a_window_belongs_to_it",
    ),
    Mutant(
        name="delete without window test",
        apply=broken_rows.no_window_test,
        scene="rows_of_other_windows_are_left_alone",
    ),
    Mutant(
        name="no lookup before delete",
        apply=broken_rows.no_lookup,
        scene="a_row_that_moved_is_never_absent",
    ),
    Mutant(
        name="top-up mark = T",
        apply=broken_rows.mark_is_t,
        scene="a_row_of_the_last_seconds_is_not_taken_for_held",
    ),
    Mutant(
        name="T not monotone",
        apply=broken_ledger.t_goes_back,
        scene="the_snapshot_does_not_go_back",
        is_jittery=True,
    ),
    Mutant(
        name="plan without lease check",
        apply=broken_ledger.without_lease_check("plan batches"),
        elsewhere="ledger/verbs/test_batch_plans.py::"
        "test_what_a_dead_owner_left_planned_does_not_hold_its_successor_back",
        argument="a plan writes nothing to the target: its requests are stopped by their deadline "
        "and its commit by the lease check",
    ),
    Mutant(
        name="schema version may go back",
        apply=broken_ledger.schema_goes_back,
        elsewhere="ledger/verbs/test_batch_plans.py::test_the_schema_version_does_not_go_back_within_a_slice",
    ),
    Mutant(
        name="hashes of rows count NULLs",
        apply=broken_rows.nulls_are_hashed,
        elsewhere="sync/identity/test_row_hash.py::"
        "test_cuts_and_column_order_and_columns_without_values_change_nothing",
    ),
    Mutant(
        name="two T in one run",
        apply=broken_rows.two_t,
        scene="all_that_a_run_reads_is_of_one_instant",
    ),
    Mutant(
        name="destination of a moved row not marked",
        apply=broken_rows.unmarked("mark_destinations"),
        scene="a_cell_that_gets_a_row_from_another_is_marked_first",
    ),
    Mutant(
        name="origin of a moved row not marked",
        apply=broken_rows.unmarked("mark_origins"),
        scene="a_cell_that_loses_a_row_to_another_is_marked_first",
    ),
    Mutant(
        name="row outside every window upserted",
        apply=broken_rows.outside_upserted,
        scene="a_row_that_left_every_window_is_deleted",
    ),
    Mutant(
        name="fingerprint per window",
        apply=broken_ledger.fingerprint_per_window,
        scene="a_fingerprint_is_that_of_the_cells_own_instant",
    ),
    Mutant(
        name="fingerprint of later than T",
        apply=broken_rows.fingerprint_of_now,
        scene="a_change_between_the_instant_and_the_plan_is_not_taken_for_synced",
    ),
    Mutant(
        name="fingerprint over the old columns",
        apply=broken_rows.fingerprint_of_old_columns,
        elsewhere="sync/test_evolution.py::"
        "test_a_column_that_goes_leaves_its_values_and_is_synced_again_when_it_returns",
    ),
    Mutant(
        name="top-up without a look at what is held",
        apply=broken_rows.topup_unseen,
        scene="an_open_window_whose_held_part_changed_is_reconciled",
    ),
    Mutant(
        name="close by top-up",
        apply=broken_rows.close_by_topup,
        scene="a_window_that_closes_is_reconciled",
    ),
    Mutant(
        name="guard before the lookup",
        apply=broken_rows.guard_before_the_lookup,
        scene="rows_that_only_moved_do_not_alarm_the_guard",
    ),
    Mutant(
        name="guard forgets what failed runs took out",
        apply=broken_ledger.failed_deletes_forgotten,
        scene="what_a_failed_run_took_out_counts_for_the_guard",
    ),
    Mutant(
        name="guard looks at others before it says what it deletes",
        apply=broken_rows.guard_before_the_intents,
        scene="of_two_runs_side_by_side_one_sees_what_the_other_takes_out",
    ),
    Mutant(
        name="number of equal rows per stream",
        apply=broken_rows.numbers_per_stream,
        scene="equal_rows_get_their_numbers_over_all_streams",
    ),
    Mutant(
        name="number of equal rows by read order",
        apply=broken_rows.numbers_by_read_order,
        scene="equal_rows_get_their_numbers_over_all_streams",
    ),
    Mutant(
        name="quarantine only grows",
        apply=broken_ledger.quarantine_grows,
        scene="a_row_that_became_good_leaves_quarantine",
    ),
    Mutant(
        name="old version of a quarantined row kept",
        apply=broken_rows.stale_kept,
        scene="no_old_version_of_a_row_in_quarantine_stays",
    ),
    Mutant(
        name="slice of equal rows by their number",
        apply=broken_rows.slice_by_the_number,
        scene="equal_rows_are_all_in_one_slice",
    ),
    Mutant(
        name="rows to keep are deleted",
        apply=broken_rows.kept_rows_deleted,
        scene="a_row_that_is_gone_is_kept_where_that_is_asked_for",
    ),
    Mutant(
        name="flag stays on a row that returns",
        apply=broken_rows.flag_stays,
        scene="a_row_that_returns_loses_its_flag",
    ),
    Mutant(
        name="flag not read back",
        apply=broken_rows.flag_unseen,
        scene="a_row_that_returns_loses_its_flag",
    ),
    Mutant(
        name="guard of a transactional target skipped",
        apply=broken_transaction.unguarded,
        elsewhere="sync/test_second_route.py::test_"
        "nothing_is_taken_if_somebody_else_wrote_meanwhile",
    ),
    Mutant(
        name="ledger before a transactional target",
        apply=broken_transaction.ledger_before_the_target,
        elsewhere="sync/test_second_route_faults.py::test_"
        "what_a_dead_turn_has_staged_is_cleared_by_the_next",
    ),
    Mutant(
        name="batches of a transactional target recognised twice",
        apply=broken_transaction.recognised_twice,
        elsewhere="sync/test_second_route.py::test_"
        "a_turn_killed_between_the_targets_commit_and_the_ledgers_is_recognised_and_recorded_once",
    ),
    Mutant(
        name="transactional target of another ledger taken for one's own",
        apply=broken_transaction.any_ledger,
        elsewhere="sync/test_second_route_faults.py::test_"
        "a_target_that_another_ledger_fills_is_left_alone",
    ),
    Mutant(
        name="batches of a transactional target recognised by number",
        apply=broken_transaction.recognised_by_number,
        elsewhere="sync/test_second_route_faults.py::test_"
        "a_target_whose_batches_the_ledger_has_planned_otherwise_is_left_alone",
    ),
    Mutant(
        name="leases given back before a transactional target has answered",
        apply=broken_transaction.given_back_before_the_answer,
        elsewhere="sync/test_second_route_faults.py::test_"
        "leases_are_kept_while_nobody_knows_whether_the_target_took_the_turn",
    ),
    Mutant(
        name="cells whose rows moved into one cell committed apart",
        apply=broken_transaction.moved_rows_apart,
        elsewhere="sync/test_second_route_faults.py::test_"
        "a_cell_is_not_committed_while_a_row_that_left_it_waits_for_another_cell",
    ),
    Mutant(
        name="transactional target ahead of its source",
        apply=broken_transaction.target_may_be_ahead,
        elsewhere="sync/test_second_route_faults.py::test_"
        "a_target_ahead_of_its_source_stops_the_turn",
    ),
)
