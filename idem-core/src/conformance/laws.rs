//! The list of laws: what a store has to keep, in one look.

/// Hands the list of laws to another macro.
#[doc(hidden)]
#[macro_export]
macro_rules! __idem_laws {
    ([$($each:tt)+] $args:tt) => {
        $($each)+! {
            $args
            claims {
                an_absent_key_is_claimed
                a_live_attempt_is_in_progress_and_untouched
                a_claim_that_will_wait_sets_the_waiters_bit_and_nothing_else
                a_claim_sent_again_hears_its_first_reply_again
                a_claim_sent_again_renews_lease_and_retention
                a_claim_of_an_ended_attempt_is_closed
                an_attempt_that_died_before_its_checkpoint_is_taken_over
                at_hold_an_attempt_that_died_past_its_checkpoint_stays_unknown
                at_rerun_an_attempt_that_died_past_its_checkpoint_is_taken_over_in_doubt
                a_claim_that_can_recover_takes_over_and_the_checkpoint_stays_passed
                a_success_is_replayed_byte_for_byte
                a_failure_is_run_again
                a_stored_error_is_replayed
            }
            checks {
                a_claim_that_was_under_way_for_too_long_writes_nothing
                a_copy_of_a_claim_is_not_granted_after_its_attempt_has_ended
                a_copy_of_a_claim_still_hears_what_grants_nothing
                another_payload_is_refused_in_every_status
                a_record_without_a_fingerprint_matches_any
                checks_come_in_their_order
                foreign_bytes_are_reported_and_kept
            }
            renewals {
                a_renewal_prolongs_lease_and_retention
                a_checkpoint_is_set_and_prolongs_lease_and_retention
                a_lapsed_lease_is_renewed_as_long_as_nobody_took_over
                an_ended_attempt_can_not_be_renewed
                nobody_renews_the_record_of_another
                a_renewal_that_was_under_way_for_too_long_writes_nothing
                many_renewals_are_answered_in_their_order
                a_renewal_of_nothing_by_nobody_leaves_nothing
            }
            settles {
                an_owner_ends_its_attempt_in_each_way
                a_lapsed_lease_does_not_end_ownership
                nobody_ends_the_attempt_of_another
                nobody_changes_what_another_has_ended
                a_settle_delivered_again_is_settled_and_changes_nothing
                a_settle_with_another_end_is_superseded
                an_owner_hears_settled_from_its_own_closed_mark
                an_abandoned_attempt_is_closed_to_its_owner_but_for_a_success
                an_abandoned_attempt_before_its_checkpoint_is_free_at_once
                an_owner_that_was_taken_over_ends_nothing
                a_claim_that_is_given_up_leaves_a_free_key
                a_takeover_in_doubt_that_is_given_up_stays_in_doubt
                a_closed_mark_stays_as_long_as_a_packet_can_be_under_way
                a_settle_that_was_under_way_for_too_long_writes_nothing
            }
            losses {
                a_success_whose_record_was_lost_is_adopted
                nothing_but_a_success_is_adopted
                an_owner_that_was_not_answered_for_the_retention_is_not_adopted
                nothing_is_adopted_over_a_closed_mark
                a_lost_record_past_its_checkpoint_is_built_again
                a_lost_record_before_its_checkpoint_stays_lost
                a_checkpoint_does_not_build_a_lost_record_again
                an_owner_that_was_not_answered_for_the_retention_rebuilds_nothing
                no_lost_record_is_built_over_a_closed_mark
            }
            tokens {
                a_token_is_issued_used_once_and_replayed_to_its_subject
                a_token_claim_of_what_is_no_token_is_rejected
                a_body_that_failed_hands_its_token_back
                a_late_success_of_a_token_that_was_handed_back_is_superseded
                a_stored_error_of_a_token_is_replayed_to_its_subject
                a_used_and_forgotten_token_is_rejected_also_to_its_owner
                an_expired_token_is_rejected
                a_token_handed_back_after_its_deadline_is_gone
                an_issue_is_answered_by_what_it_finds
                an_issue_that_was_under_way_for_too_long_writes_nothing
                an_operator_takes_a_token_back
                a_lost_token_record_is_built_again_with_its_token
            }
            operators {
                an_operator_says_that_it_happened
                an_operator_says_that_it_did_not_happen
                a_live_attempt_is_resolved_only_by_force
                a_resolve_of_what_has_changed_does_nothing
                a_record_is_forgotten_in_every_status
                a_live_attempt_is_forgotten_only_by_force_and_is_told
                a_success_is_never_released
                a_forget_of_what_has_changed_does_nothing
                a_forgotten_success_is_not_brought_back_for_as_long_as_it_was_kept
                a_replaced_mark_lends_its_time_to_the_next_one
            }
            refusals {
                a_refused_key_refuses_every_claim
                a_refusal_ends_with_its_time
                what_did_not_happen_is_refused
                what_may_have_happened_is_not_refused
                a_refusal_that_was_under_way_for_too_long_writes_nothing
                an_operator_forgets_a_refusal
            }
            times {
                a_finished_record_lives_for_expire
                an_unknown_outcome_is_held_for_doubt
                an_attempt_before_its_checkpoint_or_at_rerun_lives_for_expire
                an_attempt_that_renews_outlives_its_retention
                duplicates_prolong_nothing
                no_write_leaves_a_record_without_an_end
                fences_grow_whatever_happens_in_between
                an_expired_record_is_absent_to_every_verb
                every_answer_tells_a_time_that_does_not_go_back
            }
            races {
                of_many_claims_at_once_one_is_granted
                of_many_takeovers_at_once_one_is_granted
                copies_of_one_claim_at_once_hear_one_grant
                a_success_and_a_takeover_at_once_agree_on_who_came_first
                no_packet_of_an_earlier_attempt_touches_a_success
                a_give_up_that_overtakes_its_claim_is_repeated_until_that_is_late
                a_whole_life_delivered_twice_is_one_life
            }
            reading {
                a_scan_shows_what_peek_shows_and_nothing_else
                a_scan_does_not_take_its_prefix_for_a_pattern
                a_scan_shows_the_records_of_several_types
                a_record_that_stays_is_seen_while_others_come_and_go
                an_expired_record_is_not_scanned
                each_end_of_an_attempt_is_reported
                an_operators_word_is_reported
                a_waiter_of_the_first_attempt_hears_the_end_of_its_takeover
                each_of_many_waiters_is_told
                reading_changes_nothing
            }
            matrix {
                owner_and_stranger_are_told_what_the_table_says
                the_second_owners_result_stays_whatever_the_first_does
                each_option_of_a_claim_counts_for_itself
            }
        }
    };
}
