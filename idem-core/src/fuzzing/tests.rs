//! The targets for a while, and targets with a mistake: a property that finds nothing proves
//! nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use serde::Serialize;

use super::fingerprint::{Ours, Print};
use super::{Campaign, TARGETS, fingerprint, key, key_text, record, token};
use crate::key::Key;

fn campaign(target: &str) -> Campaign {
    let corpus = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus"));
    Campaign::over(&corpus.join(target), 20_000).unwrap()
}

/// Whether a campaign over the corpus of `target` finds the mistake in a reader.
fn finds(target: &str, property: impl Fn(&[u8])) -> bool {
    let campaign = campaign(target);
    catch_unwind(AssertUnwindSafe(|| campaign.run(property))).is_err()
}

#[test]
fn every_reader_keeps_its_property_whatever_it_reads() {
    for (name, property) in TARGETS {
        campaign(name).run(property);
    }
}

#[test]
fn a_format_that_ignores_what_follows_a_record_is_found() {
    let broken = record::Format {
        read: |bytes, end| {
            let whole = (record::OURS.read)(bytes.clone(), end);
            whole.or_else(|| (record::OURS.read)(bytes.slice(..bytes.len().checked_sub(1)?), end))
        },
        ..record::OURS
    };
    assert!(finds("record", |bytes| record::check(broken, bytes)));
}

#[test]
fn a_format_that_loses_a_field_is_found() {
    let broken = record::Format {
        write: |record| {
            let mut record = record.clone();
            record.closed_until = None;
            (record::OURS.write)(&record)
        },
        ..record::OURS
    };
    assert!(finds("record", |bytes| record::check(broken, bytes)));
}

#[test]
fn a_format_that_swaps_two_times_is_found() {
    use crate::record::State;
    let broken = record::Format {
        read: |bytes, end| {
            let mut record = (record::OURS.read)(bytes, end)?;
            if let State::Processing(attempt) = &mut record.state {
                std::mem::swap(&mut attempt.since, &mut attempt.lease_until);
            }
            Some(record)
        },
        ..record::OURS
    };
    assert!(finds("record", |bytes| record::check(broken, bytes)));
}

#[test]
fn a_key_without_escapes_is_found() {
    let broken: key::Build = |template, parts| {
        let [before, between, behind] = template.literals;
        let [first, second] = parts;
        Some(format!(
            "order:pay::{before}{first}{between}{second}{behind}"
        ))
    };
    assert!(finds("key", |bytes| key::check(broken, bytes)));
}

#[test]
fn a_key_that_is_cut_without_a_hash_is_found() {
    let broken: key::Build = |template, parts| {
        let key = (key::OURS)(template, parts)?;
        Some(key.split('~').next()?.to_owned())
    };
    assert!(finds("key", |bytes| key::check(broken, bytes)));
}

#[test]
fn a_key_in_which_case_is_lost_is_found() {
    let broken: key::Build = |template, parts| Some((key::OURS)(template, parts)?.to_lowercase());
    assert!(finds("key", |bytes| key::check(broken, bytes)));
}

#[test]
fn a_reader_of_keys_that_trims_is_found() {
    let broken: key_text::Parse = |text| Key::parse(text.trim()).ok();
    assert!(finds("key_text", |bytes| key_text::check(broken, bytes)));
}

#[test]
fn a_token_whose_hash_is_taken_as_it_is_is_found() {
    let broken: token::KeyOf = |text| {
        let key = Key::parse(&format!("order:submit::{text}"));
        let hash = key.ok().filter(|_| text.starts_with('~'));
        hash.map_or_else(|| (token::OURS)(text), |key| key.as_str().to_owned())
    };
    assert!(finds("token", |bytes| token::check(broken, bytes)));
}

#[test]
fn a_token_of_which_blanks_are_cut_is_found() {
    let broken: token::KeyOf = |text| (token::OURS)(text.trim());
    assert!(finds("token", |bytes| token::check(broken, bytes)));
}

#[test]
fn a_fingerprint_that_depends_on_an_order_is_found() {
    struct Ordered;
    impl Print for Ordered {
        fn of<P: Serialize>(payload: &P) -> Option<Vec<u8>> {
            serde_json::to_vec(payload).ok()
        }
    }
    assert!(finds("fingerprint", fingerprint::check::<Ordered>));
}

#[test]
fn a_fingerprint_without_the_bounds_of_its_texts_is_found() {
    struct Unbounded;
    impl Print for Unbounded {
        fn of<P: Serialize>(payload: &P) -> Option<Vec<u8>> {
            let mut bytes = serde_json::to_vec(payload).ok()?;
            bytes.retain(|byte| !b"\",[]".contains(byte));
            // Whatever the order, so that only the missing bounds are to be found.
            bytes.sort_unstable();
            Some(bytes)
        }
    }
    assert!(finds("fingerprint", fingerprint::check::<Unbounded>));
    assert!(!finds("fingerprint", fingerprint::check::<Ours>));
}

#[cfg(feature = "redis")]
mod replies {
    use super::super::reply;
    use super::finds;
    use crate::record::RenewReply;
    use crate::store::redis::reply::Reply;

    #[test]
    fn a_reply_that_goes_on_behind_its_end_is_found() {
        let broken: reply::Read = |bytes| {
            let short = bytes[..bytes.len().saturating_sub(1)].to_vec();
            (reply::OURS)(bytes).or_else(|| (reply::OURS)(short))
        };
        assert!(finds("reply", |bytes| reply::check(broken, bytes)));
    }

    #[test]
    fn an_unknown_kind_that_is_taken_for_a_permission_is_found() {
        let broken: reply::Read = |mut bytes| {
            let known = (reply::OURS)(bytes.clone());
            known.or_else(|| {
                *bytes.first_mut()? = b'R';
                (reply::OURS)(bytes)
            })
        };
        assert!(finds("reply", |bytes| reply::check(broken, bytes)));
    }

    #[test]
    fn a_kind_that_is_taken_for_another_is_found() {
        let broken: reply::Read = |bytes| {
            let mut answer = (reply::OURS)(bytes)?;
            if RenewReply::try_from(answer.reply.clone()).is_ok() {
                answer.reply = Reply::Renewed;
            }
            Some(answer)
        };
        assert!(finds("reply", |bytes| reply::check(broken, bytes)));
    }
}

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod rows {
    use super::super::row;
    use super::finds;
    use crate::record::Slot;

    #[test]
    fn a_reader_of_rows_that_does_not_compare_the_columns_is_found() {
        let broken: row::Read = |row, now| match (row::OURS)(row, now) {
            Slot::Damaged => row.packed_only(),
            slot => slot,
        };
        assert!(finds("row", |bytes| row::check(broken, bytes)));
    }

    #[test]
    fn a_changed_row_that_counts_as_absent_is_found() {
        let broken: row::Read = |row, now| match (row::OURS)(row, now) {
            Slot::Damaged => Slot::Absent,
            slot => slot,
        };
        assert!(finds("row", |bytes| row::check(broken, bytes)));
    }
}
