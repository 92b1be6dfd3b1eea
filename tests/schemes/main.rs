//! The schemes that stand on the caller's own tables: transitions and unique constraints, each
//! scene on each database at each isolation.

mod bed;
mod counted;
mod dropped;
mod errors;
mod generic;
mod insert;
mod transition;

use bed::{Bed, Level};

/// Tests out of scenes, which are functions of a database and an isolation.
macro_rules! scenes {
    ($database:ty, $level:expr, $module:ident: $($(#[$attribute:meta])* $scene:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            $(#[$attribute])*
            async fn $scene() {
                crate::$module::$scene(<$database as crate::Bed>::fresh($level).await).await;
            }
        )*
    };
}

macro_rules! all_scenes {
    ($name:ident, $database:ty, $level:expr) => {
        mod $name {
            use crate::Level;

            scenes! { $database, $level, transition:
                each_case_has_its_answer
                an_old_version_is_a_conflict_and_changes_nothing
                a_redelivered_event_is_there_also_after_later_transitions
                what_others_have_reached_is_no_conflict
                of_two_payments_one_is_applied_and_one_is_a_conflict
                of_fifty_payments_one_is_applied
                of_fifty_deliveries_one_is_applied
                fifty_orders_are_paid_at_once
                a_row_that_stays_locked_is_a_typed_error
                a_transaction_that_read_before_gets_no_false_answer
                every_answer_leaves_the_transaction_usable
                a_rollback_loses_the_change_and_the_event
                ids_that_collations_confuse_are_apart
                ids_of_bytes_are_apart
                tables_that_share_a_log_do_not_meet
                machines_on_one_table_do_not_meet
                names_are_quoted_and_checked
                a_row_with_an_unknown_status_is_an_error
                an_id_of_two_rows_is_an_error
                a_log_that_is_missing_is_named_with_the_way_out
                two_migrations_at_once_make_one_log
                a_change_that_is_dropped_anywhere_and_rolled_back_is_not_there
            }

            mod insert {
                use crate::Level;

                scenes! { $database, $level, insert:
                    the_first_inserts_and_the_second_gets_its_row
                    a_transaction_goes_on_after_each_outcome_and_commits
                    of_fifty_one_inserts
                    of_fifty_transactions_one_inserts
                    another_constraint_is_a_conflict_that_names_it
                    a_constraint_is_known_by_its_names
                    a_constraint_is_known_in_every_language
                    other_violations_pass_with_their_kind
                    a_transaction_that_read_before_sees_the_row_or_begins_again
                    an_insert_that_hides_its_conflict_is_not_taken_for_new
                    an_insert_that_is_dropped_anywhere_is_there_if_it_is_kept_at_all
                    a_row_that_is_there_stays_alone_wherever_an_insert_is_dropped
                    an_insert_that_is_dropped_outside_of_a_transaction_is_done_or_not
                }
            }
        }
    };
}

mod postgres {
    use crate::Level;

    scenes! { sqlx::Postgres, Level::ReadCommitted, transition:
        bytes_are_one_id_however_they_are_shown
        of_two_that_want_two_orders_crosswise_one_is_told
        #[should_panic(expected = "one without the other")]
        a_change_that_is_dropped_and_committed_is_found_out
        #[should_panic(expected = "one without the other")]
        a_change_and_an_event_that_commit_apart_are_found_out
    }

    scenes! { sqlx::Postgres, Level::ReadCommitted, insert:
        #[should_panic(expected = "what was rolled back is there")]
        an_insert_beside_the_transaction_is_found_out
    }

    all_scenes! { read_committed, sqlx::Postgres, Level::ReadCommitted }
    all_scenes! { repeatable_read, sqlx::Postgres, Level::RepeatableRead }
    all_scenes! { serializable, sqlx::Postgres, Level::Serializable }
}

mod mariadb {
    use crate::Level;

    scenes! { sqlx::MySql, Level::RepeatableRead, transition:
        of_two_that_want_two_orders_crosswise_one_is_told
        a_change_that_is_dropped_while_it_is_prepared_is_rolled_back
        #[should_panic(expected = "one without the other")]
        a_change_that_is_dropped_and_committed_is_found_out
    }

    all_scenes! { read_committed, sqlx::MySql, Level::ReadCommitted }
    all_scenes! { repeatable_read, sqlx::MySql, Level::RepeatableRead }
    all_scenes! { one_snapshot, sqlx::MySql, Level::OneSnapshot }
    all_scenes! { serializable, sqlx::MySql, Level::Serializable }
}

mod sqlite {
    use crate::Level;

    scenes! { sqlx::Sqlite, Level::Serializable, transition:
        #[should_panic(expected = "one without the other")]
        a_change_that_is_dropped_and_committed_is_found_out
    }

    #[tokio::test]
    async fn a_constraint_that_rolls_back_the_transaction_is_no_row_that_exists() {
        crate::insert::a_constraint_that_rolls_back_is_told().await;
    }

    #[tokio::test]
    async fn a_constraint_that_rolls_back_is_as_good_as_any_outside_of_a_transaction() {
        crate::insert::a_constraint_that_rolls_back_alone_is_as_good_as_any().await;
    }

    all_scenes! { serializable, sqlx::Sqlite, Level::Serializable }
}
