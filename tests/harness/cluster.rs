use idem_tests::cluster::Cluster;
use idem_tests::redis::RedisOptions;
use idem_tests::resp::ask;

const KEY: &str = "idem:order:pay::A-1";

#[test]
fn a_cluster_serves_moves_a_slot_and_survives_the_loss_of_a_master() {
    let cluster = Cluster::start(&RedisOptions::new().password("secret")).unwrap();
    assert_eq!(cluster.urls().len(), 6);
    let slot = cluster.slot_of(KEY).unwrap();
    let owner = cluster.master_of(slot).unwrap();
    owner.cli(&["SET", KEY, "1"]).unwrap();

    let other = cluster.master_of((slot + 8192) % 16384).unwrap();
    assert_ne!(other.port(), owner.port());
    let moving = cluster.begin_move(slot, other).unwrap();
    let ask_error = owner
        .cli(&["GET", "{idem:order:pay::A-1}:none"])
        .unwrap_err()
        .to_string();
    assert_eq!(ask_error, format!("ASK {slot} {}", other.address()));
    moving.finish().unwrap();
    assert_eq!(cluster.master_of(slot).unwrap().port(), other.port());
    assert_eq!(other.cli(&["GET", KEY]).unwrap(), "1");
    let moved = owner.cli(&["GET", KEY]).unwrap_err().to_string();
    assert_eq!(moved, format!("MOVED {slot} {}", other.address()));

    other.wait_copied().unwrap();
    let killed = cluster.kill_master_of(KEY).unwrap();
    assert_eq!(killed.port(), other.port());
    assert!(ask(killed.address(), None, &["PING"]).is_err());
    let heir = cluster.wait_failed_over(KEY).unwrap();
    assert_ne!(heir.port(), killed.port());
    assert_eq!(heir.cli(&["GET", KEY]).unwrap(), "1");

    killed.restart().unwrap();
    cluster.wait_ready().unwrap();
    assert_eq!(killed.role().unwrap(), "slave");
}
