//! The suite that every store passes, with the same test bodies.
//!
//! [`conformance!`](crate::conformance!) makes one test of each case, so that a failure names it.

pub mod caps;
pub mod clock;
pub mod expiry;
pub mod feed;
pub mod finding;
pub mod history;
pub mod idempotency;
pub mod lasting;
pub mod limits;
pub mod paging;
pub mod provenance;
pub mod purging;
pub mod reading;
pub mod tenants;
pub mod writing;

mod subject;

pub use subject::{Subject, run};

/// Makes a module of tests, two per case: with the limits of the product, and with tiny ones. The
/// expression gives a fresh [`Fixture`] for each.
///
/// [`Fixture`]: crate::Fixture
#[macro_export]
macro_rules! conformance {
    ($name:ident, $fixture:expr) => {
        mod $name {
            #[allow(unused_imports, reason = "the fixture may be named by its full path")]
            use super::*;
            $crate::conformance_cases! { $fixture;
                reading {
                    an_empty_store_answers
                    a_full_record_comes_back_the_same
                    every_kind_scope_and_origin_comes_back
                    unicode_comes_back
                    numbers_come_back_exactly
                    get_keeps_the_order_asked
                    ids_are_found_by_their_beginning
                    each_filter_condition_holds
                    a_viewer_sees_what_is_for_them
                    tally_equals_a_recount
                }
                finding {
                    vectors_are_found_by_the_model_that_made_them
                    neighbours_stand_beside_each_other_in_their_session
                    sessions_are_counted_the_last_used_first
                }
                paging {
                    orders_are_as_named
                    pages_have_no_gap_and_no_repeat
                    a_filtered_scan_pages_over_what_does_not_match
                    lists_of_kinds_scopes_and_owners_come_in_order
                    what_follows_a_cursor_is_what_was_written_since
                    pages_survive_writes_in_between
                    a_page_is_bounded
                    extreme_times_page_as_well
                }
                writing {
                    versions_count_up
                    an_update_replaces_everything
                    absent_is_held_to
                    a_stale_version_is_refused
                    a_conflict_rolls_everything_back
                    an_invalid_op_anywhere_rolls_everything_back
                    ops_on_one_id_happen_in_order
                    put_and_purge_in_one_batch_leaves_nothing
                    deleting_what_is_not_there_changes_nothing
                    an_empty_batch_changes_nothing
                    numbers_are_never_used_again
                    concurrent_writes_all_arrive
                    concurrent_updates_lose_nothing
                    a_batch_that_fails_among_others_fails_alone
                }
                idempotency {
                    a_retry_stores_once_and_answers_the_same
                    a_retry_answers_the_same_after_a_delete
                    the_whole_receipt_is_kept
                    a_key_is_not_for_something_else
                    a_failed_batch_leaves_its_key_free
                    a_key_must_be_a_line
                    a_key_is_free_again_after_its_time
                    the_oldest_keys_go_first
                }
                expiry {
                    an_expired_record_is_invisible_at_once
                    the_tally_counts_what_upkeep_has_not_erased
                    upkeep_erases_what_expired
                    upkeep_stops_at_its_limit
                    writes_clear_a_little
                    a_put_over_an_expired_record_starts_anew
                    an_expired_record_is_absent_to_expectations
                    at_its_last_moment_a_record_is_there
                    a_later_expiry_keeps_the_record
                    a_version_that_expired_is_not_shown_as_history
                    what_is_expired_when_written_is_never_seen
                    a_cascade_keeps_nothing_expired
                    upkeep_erases_replaced_versions_that_expired
                    upkeep_erases_deleted_records_that_expired
                    a_deletion_expires_with_what_it_deleted
                    expired_history_goes_by_expiry_then_number
                    erased_history_takes_its_links_along
                    erasing_history_keeps_the_links_of_what_is_left
                    what_was_before_is_the_version_right_before
                    what_is_left_counts_from_the_next_change
                    upkeep_goes_in_order
                    upkeep_knows_whether_there_is_more
                }
                clock {
                    a_clock_that_jumps_ahead_erases_nothing
                    a_jump_is_remembered_after_reopening
                    a_clock_that_stays_ahead_is_believed_after_a_day
                    upkeep_alone_keeps_up_with_the_clock
                    an_accepted_clock_erases_at_once
                    what_a_wrong_clock_replaced_is_in_the_history
                    what_a_wrong_clock_cascades_to_can_be_undone
                    a_full_namespace_gives_up_the_weakest_while_the_clock_is_wrong
                    each_tenant_has_its_own_clock
                }
                caps {
                    the_least_important_goes_first_then_the_oldest
                    expired_notes_go_before_all_others
                    only_notes_count
                    each_namespace_has_its_own_cap
                    expired_notes_make_room_in_their_own_namespace
                    expired_notes_make_room_behind_other_expired_records
                    an_update_evicts_nothing
                    a_lower_cap_evicts_many
                    a_weak_newcomer_goes_at_once
                    a_cap_of_nothing_keeps_nothing
                    what_becomes_a_note_counts
                }
                provenance {
                    a_delete_takes_the_whole_chain
                    a_diamond_falls_once
                    a_cycle_ends
                    any_source_takes_it_along
                    links_go_with_the_version
                    a_deleted_record_is_not_deleted_again
                    a_cascade_goes_through_the_deleted
                    a_new_life_has_new_links
                    a_source_may_come_later
                    naming_a_source_twice_is_once
                    a_batch_may_delete_what_it_cascades_to
                    the_nearest_fall_first
                    a_cascade_has_a_limit
                    what_was_made_from_a_record_is_listed
                }
                purging {
                    a_purge_leaves_no_trace
                    a_purge_takes_what_was_derived
                    a_purge_reaches_the_deleted
                    a_purge_needs_the_right
                    purging_what_is_not_there_is_no_error
                    a_purged_id_starts_anew
                    nothing_purged_comes_back_on_reopening
                    what_no_scan_shows_is_listed_for_a_purge
                    what_was_derived_and_deleted_is_listed
                    hidden_records_come_in_pages
                    a_purge_erases_all_that_is_listed
                }
                history {
                    a_put_an_update_and_a_delete_are_told
                    a_cascade_is_told
                    an_undo_takes_nothing_along
                    an_eviction_is_told
                    an_undo_is_told
                    pages_go_on_before
                    a_commit_can_be_asked_for
                    a_continued_commit_is_listed_whole
                    only_a_commit_that_has_begun_is_continued
                    one_page_is_bounded
                    versions_go_on_after_a_delete
                    upkeep_prunes_by_the_policy
                    pruning_is_limited_and_starts_with_the_oldest
                    pruning_takes_deleted_records_whole
                    pruned_links_are_gone
                    pruning_keeps_the_links_of_what_is_left
                }
                feed {
                    the_feed_is_the_history_the_other_way_round
                    a_page_of_the_feed_ends_with_the_change_that_reaches_its_bytes
                    a_purge_is_in_the_feed_as_an_id
                    listeners_that_resume_hear_each_change_once
                }
                tenants {
                    one_id_in_two_tenants_is_two_records
                    writes_stay_within
                    deletes_and_purges_stay_within
                    cascades_stay_within
                    caps_count_one_tenant
                    upkeep_stays_within
                    keys_belong_to_a_tenant
                    a_foreign_record_is_refused
                    a_tenant_numbers_its_own_changes
                }
                limits {
                    too_many_ids_are_refused
                    too_many_ops_are_refused
                    too_many_bytes_are_refused
                    a_broken_record_is_refused
                    a_large_record_is_kept
                    a_reader_cannot_write
                    a_writer_can_read
                }
                lasting {
                    reopening_keeps_everything
                    numbers_go_on_after_reopening
                    links_and_caps_go_on_after_reopening
                    a_refused_batch_is_not_there_after_reopening
                    upkeep_is_kept_after_reopening
                }
            }
        }
    };
}

/// One test per case. Use [`conformance!`](crate::conformance!).
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    ($fixture:expr; $($theme:ident { $($case:ident)+ })+) => { $(
        mod $theme {
            #[allow(unused_imports, reason = "the fixture may be named by its full path")]
            use super::*;
            $(
                #[test]
                fn $case() {
                    $crate::conformance::run($fixture, $crate::conformance::$theme::$case);
                }
            )+

            mod with_tiny_limits {
                #[allow(unused_imports, reason = "the fixture may be named by its full path")]
                use super::*;
                $(
                    #[test]
                    fn $case() {
                        $crate::make::with_limits(&mnemon_core::Limits::TINY, || {
                            $crate::conformance::run($fixture, $crate::conformance::$theme::$case);
                        });
                    }
                )+
            }
        }
    )+ };
}
