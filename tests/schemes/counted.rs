//! Where MariaDB counts only the rows that were changed.

use idem_tests::changed_rows::{counting_changed_rows, is_counting_them};
use sqlx::MySql;
use sqlx::mysql::MySqlPoolOptions;

use crate::bed::{Bed, Fresh, Level};
use crate::{insert, transition};

async fn fresh() -> Fresh<MySql> {
    let Fresh { pool, level } = MySql::fresh(Level::RepeatableRead).await;
    let options = (*pool.connect_options()).clone();
    let port = counting_changed_rows(options.get_port()).await;
    let counted = MySqlPoolOptions::new().max_connections(8);
    let counted = counted.connect_with(options.port(port)).await.unwrap();
    for (pool, is_counting) in [(&pool, false), (&counted, true)] {
        let mut connection = pool.acquire().await.unwrap();
        assert_eq!(is_counting_them(&mut connection).await, is_counting);
    }
    Fresh {
        pool: counted,
        level,
    }
}

macro_rules! scenes {
    ($($module:ident: $($scene:ident)*;)*) => {
        $($(
            // CASES N17
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $scene() {
                $module::$scene(fresh().await).await;
            }
        )*)*
    };
}

scenes! {
    transition:
        each_case_has_its_answer
        an_old_version_is_a_conflict_and_changes_nothing
        a_redelivered_event_is_there_also_after_later_transitions
        of_two_payments_one_is_applied_and_one_is_a_conflict
        of_fifty_deliveries_one_is_applied;
    insert:
        the_first_inserts_and_the_second_gets_its_row
        of_fifty_one_inserts
        another_constraint_is_a_conflict_that_names_it
        an_insert_that_hides_its_conflict_is_not_taken_for_new;
}
