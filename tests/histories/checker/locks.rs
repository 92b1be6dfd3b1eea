//! The laws of locks, and those for when all others have left.

use idem_tests::history::{Law, Level};

use super::{assert_breaks, assert_kept, broken};

/// It writes under the lock, and lets it go.
const FIRST: &str =
    "0 a invoked, 1 a begun 5, 2 a held 2, 2 a happened, 3 a ended ok, 4 a returned ok a";
/// So does the next one.
const NEXT: &str = "2 b invoked, 5 b begun 6, 6 b happened, 7 b ended ok, 8 b returned ok b";
const FREE: &str = "9000000 s invoked, 9000001 s begun 9, 9000002 s happened, \
                    9000003 s ended ok, 9000004 s returned ok s";

/// It writes in time, and is stopped for longer than its lease before it goes on.
const STOPPED: &str = "0 a invoked, 1 a begun 5, 2 a happened";
const HEIR: &str = "3 b invoked, 1000003 b begun 6, 1000004 b happened, 1000005 b ended ok, \
                    1000006 b returned ok b";

#[test]
fn holders_one_after_the_other_keep_all_promises() {
    assert_kept(Level::Lock, &[FIRST, NEXT, FREE]);
    let refused = "1 c invoked, 1 c returned refused in_progress";
    let lost = "1000007 a ended ok, 1000008 a returned refused lease_lost";
    assert_kept(Level::Lock, &[refused, STOPPED, HEIR, lost, FREE]);
}

#[test]
fn a_holder_that_dies_fails_or_goes_away_is_followed() {
    assert_kept(Level::Lock, &[STOPPED, HEIR, FREE]);
    for end in ["unknown", "nothing", "dropped"] {
        let ended = format!("0 a invoked, 1 a begun 5, 2 a ended {end}");
        assert_kept(Level::Lock, &[&ended, NEXT, FREE]);
    }
}

#[test]
fn a_holder_in_the_first_lease_of_another_is_seen() {
    let early = "3 b invoked, 900000 b begun 6, 900001 b ended nothing, 900002 b returned failed";
    assert_breaks(Law::OneHolder, Level::Lock, &[STOPPED, early, FREE]);
}

#[test]
fn who_is_told_that_he_holds_what_another_has_got_is_seen() {
    // After the other had begun, or before.
    for (asked, falls) in [(1_000_004, true), (1_000_002, false)] {
        let sure = format!("1000007 a held {asked}");
        let broken = broken(Level::Lock, &[STOPPED, HEIR, &sure, FREE]);
        assert_eq!(broken.contains(&Law::OneHolder), falls, "{broken:?}");
    }
}

#[test]
fn a_write_behind_a_later_holder_is_seen() {
    let stopped = "0 a invoked, 1 a begun 5";
    let behind = "1000007 a happened";
    assert_breaks(
        Law::WritesInOrder,
        Level::Lock,
        &[stopped, HEIR, behind, FREE],
    );
    let barred = "1000007 a barred, 1000008 a ended nothing, 1000009 a returned failed";
    assert_kept(Level::Lock, &[stopped, HEIR, barred, FREE]);
    // Its fence does not show that it came first.
    let higher = "0 a invoked, 1 a begun 7";
    assert_breaks(
        Law::WritesInOrder,
        Level::Lock,
        &[higher, HEIR, behind, FREE],
    );
}

#[test]
fn who_is_told_that_he_released_what_another_has_got_is_seen() {
    let content = "1000007 a ended ok, 1000008 a returned ok a";
    assert_breaks(
        Law::LossIsTold,
        Level::Lock,
        &[STOPPED, HEIR, content, FREE],
    );
    // Under the attribute it is said beside the result.
    let said = "1000007 a ended ok, 1000008 a returned unconfirmed a";
    assert_kept(Level::Lock, &[STOPPED, HEIR, said, FREE]);
}

#[test]
fn a_key_that_nobody_renews_and_that_is_not_free_after_its_lease_is_seen() {
    let asked = |who, at| format!("{at} {who} invoked, {at} {who} returned refused in_progress");
    let dead = "0 b invoked, 1 b begun 4";
    for level in [Level::Lock, Level::Hold, Level::Rerun] {
        let first = asked("s", 7_000_000);
        let [in_time, late] = [8_900_000, 9_100_000].map(|at| asked("t", at));
        let broken = broken(level, &[dead, &first, &in_time]);
        assert!(!broken.contains(&Law::FreeAtLast), "{broken:?}");
        assert_breaks(Law::FreeAtLast, level, &[dead, &first, &late]);
        let own = "7000000 s invoked, 7500000 s returned refused store";
        let broken = super::broken(level, &[dead, own, &late]);
        assert!(!broken.contains(&Law::FreeAtLast), "{broken:?}");
    }
}

#[test]
fn a_refusal_for_which_there_is_no_reason_is_seen() {
    let refused = |code| format!("5 c invoked, 5 c returned refused {code}");
    for (code, level) in [
        ("damaged", Level::Lock),
        ("mismatch", Level::Hold),
        ("outcome_unknown", Level::Rerun),
        ("lease_lost", Level::Transaction),
        ("database", Level::Rerun),
    ] {
        assert_breaks(Law::KnownRefusals, level, &[&refused(code)]);
    }
    for (code, level) in [
        ("store", Level::Lock),
        ("lease_lost", Level::Hold),
        ("outcome_unknown", Level::Recover),
        ("database", Level::Transaction),
    ] {
        let broken = broken(level, &[&refused(code)]);
        assert!(!broken.contains(&Law::KnownRefusals), "{broken:?}");
    }
}
