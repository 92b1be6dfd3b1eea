use idem_tests::redis::RedisOptions;
use idem_tests::sentinel::Sentinels;

#[test]
fn sentinels_replace_a_killed_master_and_take_it_back_as_a_replica() {
    let group = Sentinels::start(&RedisOptions::new()).unwrap();
    assert_eq!(group.urls().len(), 3);
    let first = group.master().unwrap();
    first.cli(&["SET", "copied", "1"]).unwrap();
    first.wait_copied().unwrap();

    let killed = group.kill_master().unwrap();
    assert_eq!(killed.port(), first.port());
    let heir = group.wait_failed_over(killed).unwrap();
    assert_eq!(heir.address(), group.master_address().unwrap());
    assert_ne!(heir.port(), killed.port());
    assert_eq!(heir.cli(&["GET", "copied"]).unwrap(), "1");
    heir.cli(&["SET", "after", "1"]).unwrap();

    killed.restart().unwrap();
    group.wait_ready().unwrap();
    assert_eq!(killed.role().unwrap(), "slave");
}

#[test]
fn what_was_written_while_the_replica_was_cut_off_is_lost_at_the_fail_over() {
    let group = Sentinels::start(&RedisOptions::new().password("secret")).unwrap();
    let master = group.master().unwrap();
    master.cut_replicas().unwrap();
    master.cli(&["SET", "alone", "1"]).unwrap();
    assert_eq!(master.online_replicas().unwrap(), 0);
    let killed = group.kill_master().unwrap();
    let heir = group.wait_failed_over(killed).unwrap();
    assert_eq!(heir.cli(&["GET", "alone"]).unwrap(), "(nil)");
}
