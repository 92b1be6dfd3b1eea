//! What every database with a server has to stand.

/// The scenes, as tests over databases of this type.
macro_rules! stands {
    ($database:ty) => {
        $crate::stands::stands! { $database, locked:
            a_crowd_at_a_locked_row_has_no_leave_to_run
            a_lock_that_hides_a_free_key_is_somebodys_attempt
            a_locked_row_is_no_leave_to_run
            a_locked_row_is_told_as_it_is_committed
            an_abandoned_attempt_whose_row_is_locked_is_somebodys
        }

        $crate::stands::stands! { $database, rows:
            a_check_names_tables_that_are_not_there
            a_dropped_call_leaves_no_transaction
            a_foreign_table_and_a_later_format_are_refused_and_left_alone
            a_lease_counts_from_its_grant
            a_limit_may_be_longer_than_a_database_counts
            a_purge_takes_the_oldest_and_what_is_not_locked
            a_row_inserted_meanwhile_is_seen
            a_row_is_told_from_others_by_its_key
            a_row_tells_when_it_was_made_and_changed
            a_version_is_written_once
            migrations_at_once_are_one
            what_changes_nothing_leaves_no_row
            without_its_tables_every_verb_says_what_to_do
        }

        #[tokio::test]
        async fn keys_that_collations_confuse_are_apart() {
            let store = <$database>::empty().await.fresh_store().await;
            scenes::keys_that_collations_confuse_are_apart(&store).await;
        }

        #[tokio::test]
        async fn purges_at_once_delete_what_is_over_and_nothing_else() {
            let store = <$database>::empty().await.fresh_store().await;
            let purge = <$database>::purge;
            scenes::purges_at_once_delete_what_is_over_and_nothing_else(&store, purge).await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn a_storm_over_four_pools_grants_each_key_once() {
            let database = <$database>::empty().await;
            let mut stores = Vec::new();
            for _ in 0..4 {
                let store = database.fresh_store().await;
                stores.push(store.limit(Duration::from_secs(20)));
            }
            scenes::a_storm_on_few_keys_grants_each_once(&stores).await;
        }

        #[test]
        fn a_store_answers_while_the_runtime_that_made_it_is_blocked_and_after_it_has_ended() {
            scenes::runtimes_do_not_depend_on_each_other(async || {
                <$database>::empty().await.fresh_store().await
            });
        }

        #[test]
        fn a_call_may_outlive_its_runtime() {
            let made = async || <$database>::empty().await.fresh_store().await;
            scenes::a_call_may_outlive_its_runtime(made, &async |store| {
                <$database>::migrate(store).await.unwrap();
            });
        }
    };
    ($database:ty, $of:ident: $($scene:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $scene() {
                $of::$scene(&<$database>::empty().await).await;
            }
        )*
    };
}

pub(crate) use stands;
