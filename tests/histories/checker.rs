//! The checker on histories made by hand: for each promise one that keeps it and one that does not.

mod locks;

use std::time::Duration;

use idem_tests::history::{CALLS_PER_WORKER, Event, Journal, Law, Level, Span, Terms, judge, read};

/// Three calls of a worker, and two of the sweeper.
const NAMES: [(&str, u64); 5] = [
    ("a", CALLS_PER_WORKER + 1),
    ("b", CALLS_PER_WORKER + 2),
    ("c", CALLS_PER_WORKER + 3),
    ("s", 1),
    ("t", 2),
];

/// An attempt that has its effect and is settled.
const WINNER: &str = "0 a invoked, 1 a begun 5, 2 a happened, 3 a ended ok, 4 a returned ok a";
/// The end of it all: somebody asks, and has the result of the winner.
const SWEEP: &str = "9000000 s invoked, 9000001 s returned ok a";

/// A history of microseconds: `0 a invoked, 1 a begun 5`; the last word may name a call.
fn history(parts: &[&str]) -> Vec<Event> {
    let lines = parts.join(", ");
    let events = lines.split(", ").map(|line| {
        let words: Vec<String> = line.split(' ').map(number).collect();
        let line = format!("{} .", words.join(" "));
        Event::read(&line).unwrap().unwrap()
    });
    events.collect()
}

fn number(word: &str) -> String {
    let named = NAMES.iter().find(|(name, _)| *name == word);
    named.map_or_else(|| word.to_owned(), |(_, number)| number.to_string())
}

fn broken_with(level: Level, parts: &[&str], rows: &[&str], losses: &[Span]) -> Vec<Law> {
    let lease = Duration::from_secs(1);
    let rows: Vec<u64> = rows
        .iter()
        .map(|row| number(row).parse().unwrap())
        .collect();
    let verdict = judge(Terms { level, lease }, &history(parts), &rows, losses);
    verdict
        .violations
        .into_iter()
        .map(|broken| broken.law)
        .collect()
}

fn broken(level: Level, parts: &[&str]) -> Vec<Law> {
    broken_with(level, parts, &[], &[])
}

#[track_caller]
fn assert_kept(level: Level, parts: &[&str]) {
    assert_eq!(broken(level, parts), []);
}

#[track_caller]
fn assert_breaks(law: Law, level: Level, parts: &[&str]) {
    let broken = broken(level, parts);
    assert!(broken.contains(&law), "{broken:?}");
}

#[test]
fn one_run_and_its_replays_keep_all_promises() {
    let replay = "5 b invoked, 6 b returned ok a";
    for level in [Level::Hold, Level::Rerun] {
        assert_kept(level, &[WINNER, replay, SWEEP]);
    }
    let refused = "0 b invoked, 1 b returned refused in_progress";
    assert_kept(Level::Hold, &[refused, WINNER, SWEEP]);
}

#[test]
fn a_body_that_did_nothing_may_be_followed_by_another() {
    let declined = "0 b invoked, 0 b begun 4, 0 b ended nothing, 0 b returned failed";
    for level in [Level::Hold, Level::Rerun] {
        assert_kept(level, &[declined, WINNER, SWEEP]);
    }
}

#[test]
fn two_results_of_one_key_are_seen() {
    let other = "5 b invoked, 6 b begun 6, 7 b happened, 8 b ended ok, 9 b returned ok b";
    for level in [Level::Hold, Level::Rerun] {
        assert_breaks(Law::OneResult, level, &[WINNER, other, SWEEP]);
    }
}

#[test]
fn at_rerun_an_unconfirmed_result_may_be_followed_by_another() {
    let unconfirmed =
        "0 b invoked, 1 b begun 4, 2 b happened, 3 b ended ok, 4 b returned unconfirmed b";
    let winner = "5 a invoked, 1000005 a begun 5, 1000006 a happened, 1000007 a ended ok, \
                  1000008 a returned ok a";
    assert_kept(Level::Rerun, &[unconfirmed, winner, SWEEP]);
    assert_breaks(Law::OneResult, Level::Hold, &[unconfirmed, winner, SWEEP]);
}

#[test]
fn a_result_without_an_effect_is_seen() {
    let idle = "0 a invoked, 1 a begun 5, 3 a ended ok, 4 a returned ok a";
    assert_breaks(Law::ResultHasEffect, Level::Hold, &[idle, SWEEP]);
    let late = "0 a invoked, 1 a begun 5, 3 a ended ok, 4 a returned ok a, 5 a happened";
    assert_breaks(Law::ResultHasEffect, Level::Hold, &[late, SWEEP]);
}

#[test]
fn a_second_effect_is_seen_where_there_may_be_one() {
    let dead = "0 b invoked, 1 b begun 4, 2 b happened";
    let winner = "3 a invoked, 1000003 a begun 5, 1000004 a happened, 1000005 a ended ok, \
                  1000006 a returned ok a";
    assert_breaks(Law::OneEffect, Level::Hold, &[dead, winner, SWEEP]);
    assert_breaks(Law::OneEffect, Level::Recover, &[dead, winner, SWEEP]);
    assert_kept(Level::Rerun, &[dead, winner, SWEEP]);
}

#[test]
fn at_hold_an_outcome_in_doubt_is_an_answer() {
    let dead = "0 a invoked, 1 a begun 5, 2 a happened";
    let held = "9 s invoked, 9 s returned refused outcome_unknown";
    assert_kept(Level::Hold, &[dead, held]);
    assert_breaks(Law::Answered, Level::Rerun, &[dead, held]);
}

#[test]
fn a_second_attempt_past_its_checkpoint_is_seen() {
    let dead = "0 b invoked, 1 b begun 4";
    let winner = "3 a invoked, 1000003 a begun 5, 1000004 a happened, 1000005 a ended ok, \
                  1000006 a returned ok a";
    assert_breaks(Law::OnePasses, Level::Hold, &[dead, winner, SWEEP]);
    // With a checkpoint of its own the body had not passed it.
    let winner = "3 a invoked, 1000003 a begun 5, 1000003 a passed, 1000004 a happened, \
                  1000005 a ended ok, 1000006 a returned ok a";
    assert_kept(Level::Recover, &[dead, winner, SWEEP]);
    let passed = "2 b passed";
    assert_breaks(
        Law::OnePasses,
        Level::Recover,
        &[dead, passed, winner, SWEEP],
    );
    let asked = "3 a invoked, 1000002 a found 5 nothing, 1000003 a begun 5, 1000003 a passed, \
                 1000004 a happened, 1000005 a ended ok, 1000006 a returned ok a";
    assert_kept(Level::Recover, &[dead, passed, asked, SWEEP]);
}

/// `a` passed its checkpoint and died.
const PASSED: &str = "0 a invoked, 1 a begun 4, 2 a passed";
/// `c` passes, too, long after it.
const NEXT_PASSES: &str = "2000000 c invoked, 2000001 c begun 6, 2000002 c passed, \
                           2000003 c happened, 2000004 c ended ok, 2000005 c returned ok c";
const NEXT_STAYS: &str = "9000000 s invoked, 9000001 s returned ok c";

#[test]
fn a_lookup_by_one_that_then_did_nothing_counts_for_those_after_it() {
    let declined = "1000003 b invoked, 1000004 b found 5 nothing, 1000005 b begun 5, \
                    1000006 b ended nothing, 1000007 b returned failed";
    assert_kept(Level::Recover, &[PASSED, declined, NEXT_PASSES, NEXT_STAYS]);
    // Of an attempt before its own, or of one that came after both, it says nothing.
    for fence in [4, 7] {
        let other = format!("1000003 b invoked, 1000004 b found {fence} nothing");
        assert_breaks(
            Law::OnePasses,
            Level::Recover,
            &[PASSED, &other, NEXT_PASSES, NEXT_STAYS],
        );
    }
}

#[test]
fn a_word_that_nothing_happened_excuses_only_those_after_it() {
    let late = "0 b invoked, 1 b begun 4, 3 a invoked, 1000003 a begun 5, 1000004 b ended nothing, \
                1000004 b returned failed, 1000005 a happened, 1000006 a ended ok, \
                1000007 a returned ok a";
    assert_breaks(Law::OnePasses, Level::Hold, &[late, SWEEP]);
}

#[test]
fn a_success_that_only_others_were_told_of_is_one() {
    let untold = "0 a invoked, 1 a begun 5, 2 a happened, 3 a ended ok, 4 a returned unconfirmed a, \
                  5 b invoked, 6 b returned ok a";
    assert_kept(Level::Rerun, &[untold, SWEEP]);
    // It was called before the others were told.
    let after =
        "1 c invoked, 2000001 c begun 6, 2000002 c ended nothing, 2000003 c returned failed";
    assert_breaks(Law::OneLives, Level::Rerun, &[untold, after, SWEEP]);
}

#[test]
fn an_error_or_a_panic_that_no_body_made_is_seen() {
    let declined = "0 b invoked, 0 b begun 4, 0 b ended nothing, 0 b returned failed";
    let panicked = "0 b invoked, 0 b begun 4, 0 b ended unknown, 0 b returned panicked";
    for kept in [declined, panicked] {
        assert_kept(Level::Rerun, &[kept, WINNER, SWEEP]);
    }
    for of_nobody in [
        "0 b invoked, 0 b returned failed",
        "0 b invoked, 0 b returned panicked",
        "0 b invoked, 0 b begun 4, 0 b ended nothing, 0 b returned panicked",
        "0 b invoked, 0 b begun 4, 0 b ended ok, 0 b returned failed",
    ] {
        assert_breaks(Law::OwnErrors, Level::Rerun, &[of_nobody, WINNER, SWEEP]);
    }
}

#[test]
fn what_recover_found_is_a_result() {
    let dead = "0 a invoked, 1 a begun 5, 2 a passed, 3 a happened";
    let heir = "4 b invoked, 5 b found 6 done a, 6 b returned ok a";
    assert_kept(Level::Recover, &[dead, heir, SWEEP]);
    let guessed = "4 b invoked, 6 b returned ok a";
    assert_breaks(
        Law::ResultAfterCommit,
        Level::Recover,
        &[dead, guessed, SWEEP],
    );
}

#[test]
fn a_body_that_begins_while_another_lives_is_seen() {
    let living = "0 b invoked, 1 b begun 4";
    let early = "3 a invoked, 900000 a begun 5, 900001 a happened, 900002 a ended ok, \
                 900003 a returned ok a";
    assert_breaks(Law::OneLives, Level::Rerun, &[living, early, SWEEP]);
    // Dropped, it is given up before its lease is over.
    let dropped = "2 b ended dropped, 2 b returned dropped";
    assert_kept(Level::Rerun, &[living, dropped, early, SWEEP]);
}

#[test]
fn a_body_that_begins_after_a_success_is_seen() {
    let after = "2000000 b invoked, 2000001 b begun 9, 2000002 b ended nothing, \
                 2000003 b returned failed";
    for level in [Level::Hold, Level::Rerun] {
        let broken = broken(level, &[WINNER, after, SWEEP]);
        assert!(broken.contains(&Law::OneLives), "{broken:?}");
        assert!(broken.contains(&Law::SuccessStays), "{broken:?}");
    }
}

#[test]
fn a_body_that_runs_twice_in_one_call_is_seen() {
    assert_breaks(Law::OneBody, Level::Rerun, &[WINNER, "5 a begun 6", SWEEP]);
}

#[test]
fn a_fence_that_does_not_grow_is_seen() {
    let before =
        |fence| format!("0 b invoked, 0 b begun {fence}, 0 b ended nothing, 0 b returned failed");
    assert_kept(Level::Rerun, &[&before(4), WINNER, SWEEP]);
    assert_breaks(Law::FencesGrow, Level::Rerun, &[&before(5), WINNER, SWEEP]);
    assert_breaks(Law::FencesGrow, Level::Rerun, &[&before(6), WINNER, SWEEP]);
}

#[test]
fn fences_of_calls_at_the_same_time_may_come_in_any_order() {
    let both = "0 a invoked, 0 b invoked, 1 b begun 6, 2 b ended nothing, 3 b returned failed, \
                3 a begun 5, 3 a happened, 3 a ended ok, 4 a returned ok a";
    let law = broken(Level::Rerun, &[both, SWEEP]);
    assert!(!law.contains(&Law::FencesGrow), "{law:?}");
}

#[test]
fn a_result_that_comes_before_its_maker_was_done_is_seen() {
    let early = "0 a invoked, 0 b invoked, 1 a begun 5, 2 a happened, 2 b returned ok a, \
                 3 a ended ok, 4 a returned ok a";
    assert_breaks(Law::ResultAfterCommit, Level::Hold, &[early, SWEEP]);
}

#[test]
fn an_answer_other_than_the_success_after_it_is_seen() {
    for code in ["in_progress", "outcome_unknown", "lease_lost", "mismatch"] {
        let lost = format!("5 b invoked, 6 b returned refused {code}");
        assert_breaks(Law::SuccessStays, Level::Hold, &[WINNER, &lost, SWEEP]);
    }
    assert_kept(
        Level::Hold,
        &[WINNER, "5 b invoked, 6 b returned refused store", SWEEP],
    );
}

#[test]
fn a_key_that_nobody_is_answered_for_is_seen() {
    assert_breaks(Law::Answered, Level::Hold, &[WINNER]);
    let stuck = "9 s invoked, 9 s returned refused in_progress";
    assert_breaks(
        Law::Answered,
        Level::Hold,
        &["0 a invoked, 1 a begun 5", stuck],
    );
}

/// A call in transaction mode, and a replay.
const COMMITTED: &str = "0 a invoked, 1 a begun 0, 2 a ended ok, 3 a committing, 4 a returned ok a";

#[test]
fn in_transaction_mode_the_rows_are_the_effects() {
    let judge = |rows: &[&str]| broken_with(Level::Transaction, &[COMMITTED, SWEEP], rows, &[]);
    assert_eq!(judge(&["a"]), []);
    assert!(judge(&[]).contains(&Law::ResultHasEffect));
    assert!(judge(&["a", "a"]).contains(&Law::OneEffect));
    assert!(judge(&["a", "b"]).contains(&Law::OneEffect));
}

#[test]
fn in_transaction_mode_nobody_gets_a_result_before_the_commit() {
    let early = "0 a invoked, 0 b invoked, 1 a begun 0, 2 a ended ok, 3 b returned ok a, \
                 4 a committing, 5 a returned ok a";
    let laws = broken_with(Level::Transaction, &[early, SWEEP], &["a"], &[]);
    assert_eq!(laws, [Law::ResultAfterCommit]);
}

#[test]
fn what_a_store_has_lost_is_no_violation_and_what_it_can_not_have_lost_is() {
    let second = "5000 b invoked, 5001 b begun 6, 5002 b happened, 5003 b ended ok, \
                  5004 b returned ok b";
    let loss = |from, until| [Span { from, until }];
    let parts = [WINNER, second, SWEEP];
    assert_eq!(broken_with(Level::Hold, &parts, &[], &loss(100, 200)), []);
    let later = loss(9_500_000, 9_600_000);
    assert_ne!(broken_with(Level::Hold, &parts, &[], &later), []);
    let idle = [
        "0 a invoked, 1 a begun 5, 3 a ended ok, 4 a returned ok a",
        SWEEP,
    ];
    let laws = broken_with(Level::Hold, &idle, &[], &loss(1, 2));
    assert_eq!(laws, [Law::ResultHasEffect]);
}

#[test]
fn what_was_broken_before_a_store_lost_anything_is_a_violation() {
    let second = "5000 b invoked, 5001 b begun 6, 5002 b happened, 5003 b ended ok, \
                  5004 b returned ok b";
    let loss = [Span {
        from: 6_000,
        until: 7_000,
    }];
    let laws = broken_with(Level::Hold, &[WINNER, second, SWEEP], &[], &loss);
    assert!(laws.contains(&Law::OneEffect), "{laws:?}");
}

#[test]
fn what_a_killed_process_had_begun_to_write_is_no_event() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(folder.path(), 1).unwrap();
    let events = history(&[WINNER]);
    journal
        .note(7, events[0].call, events[0].what.clone())
        .unwrap();
    let file = folder.path().join("key-7");
    let torn = format!(
        "{}\n1 10000001 begu",
        std::fs::read_to_string(&file).unwrap()
    );
    std::fs::write(&file, torn).unwrap();
    journal
        .note(7, events[2].call, events[2].what.clone())
        .unwrap();
    let read = read(folder.path(), 7).unwrap();
    let whats: Vec<_> = read.iter().map(|event| &event.what).collect();
    assert_eq!(whats, [&events[0].what, &events[2].what]);
}

#[test]
fn every_event_is_read_as_it_was_written() {
    let all = "0 a invoked, 1 a begun 5, 2 a passed, 3 a happened, 4 a ended ok, 4 a ended nothing, \
               4 a ended unknown, 4 a ended dropped, 5 a committing, 6 a found 5 done b, \
               6 a found 5 nothing, 6 a barred, 6 a held 7, 7 a returned ok b, 7 a returned unconfirmed b, \
               7 a returned failed, 7 a returned refused store, 7 a returned dropped, \
               7 a returned panicked";
    for event in history(&[all]) {
        assert_eq!(Event::read(&event.line()).unwrap(), Some(event));
    }
    assert!(Event::read("1 2 nonsense .").is_err());
}
