//! The targets for a while, and targets with a mistake: a property that finds nothing proves
//! nothing.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use super::fingerprint::{Ours, Print};
use super::{Campaign, TARGETS, fingerprint, key_text, token};
use crate::key::{Key, KeyBuilder};

fn campaign(target: &str) -> Campaign {
    let corpus = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus"));
    Campaign::over(&corpus.join(target), 20_000).unwrap()
}

/// Whether a campaign over the corpus of `target` finds the mistake in a reader that `about` names.
pub(crate) fn finds(target: &str, about: &str, property: impl Fn(&[u8])) -> bool {
    campaign(target).finds(about, property)
}

#[test]
fn every_reader_keeps_its_property_whatever_it_reads() {
    for (name, property) in TARGETS {
        campaign(name).run(property);
    }
}

#[test]
fn a_mistake_of_another_kind_is_not_taken_for_the_one_that_is_looked_for() {
    assert!(!finds("record", "is looked for", |_| panic!("another")));
    assert!(finds("record", "is looked for", |_| panic!(
        "what is looked for"
    )));
}

mod records {
    use super::super::record::{Format, OURS, check};
    use super::finds;
    use crate::record::State;

    fn finds_in(broken: Format, about: &str) -> bool {
        finds("record", about, |bytes| check(broken, bytes))
    }

    #[test]
    fn a_format_that_ignores_what_follows_a_record_is_found() {
        let broken = Format {
            read: |bytes, end| {
                let whole = (OURS.read)(bytes.clone(), end);
                whole.or_else(|| (OURS.read)(bytes.slice(..bytes.len().checked_sub(1)?), end))
            },
            ..OURS
        };
        assert!(finds_in(broken, "a byte has no meaning"));
    }

    #[test]
    fn a_format_that_does_not_read_a_field_is_found() {
        let broken = Format {
            read: |bytes, end| {
                let mut record = (OURS.read)(bytes, end)?;
                record.attempt = 1;
                Some(record)
            },
            ..OURS
        };
        assert!(finds_in(broken, "bytes have two meanings"));
    }

    #[test]
    fn a_format_that_loses_a_field_is_found() {
        let broken = Format {
            write: |record| {
                let mut record = record.clone();
                record.closed_until = None;
                (OURS.write)(&record)
            },
            ..OURS
        };
        assert!(finds_in(broken, "is not read as it was written"));
    }

    #[test]
    fn a_format_that_swaps_two_times_is_found() {
        let broken = Format {
            read: |bytes, end| {
                let mut record = (OURS.read)(bytes, end)?;
                if let State::Processing(attempt) = &mut record.state {
                    std::mem::swap(&mut attempt.since, &mut attempt.lease_until);
                }
                Some(record)
            },
            ..OURS
        };
        assert!(finds_in(broken, "is not read as it was written"));
    }
}

mod keys {
    use super::super::key::{Build, OURS, Template, check};
    use super::finds;

    fn finds_in(broken: Build, about: &str) -> bool {
        finds("key", about, |bytes| check(broken, bytes))
    }

    #[test]
    fn a_key_without_escapes_is_found() {
        let broken: Build = |template, parts| {
            let [before, between, behind] = template.literals;
            let [first, second] = parts;
            Some(format!(
                "order:pay::{before}{first}{between}{second}{behind}"
            ))
        };
        assert!(finds_in(broken, "can not be read back"));
        assert!(finds_in(broken, "shows others"));
    }

    #[test]
    fn a_key_without_a_bound_is_found() {
        let broken: Build = |template, parts| {
            let key = OURS(template, parts)?;
            Some(key.replace('~', &"x".repeat(200)))
        };
        assert!(finds_in(broken, "is too long"));
    }

    #[test]
    fn a_key_with_less_of_a_prefix_is_found() {
        let broken: Build = |template, parts| {
            let key = OURS(template, parts)?;
            Some(key.replacen("order:pay::", "order::", 1))
        };
        assert!(finds_in(broken, "has another prefix"));
    }

    #[test]
    fn a_key_that_is_cut_without_a_hash_is_found() {
        let broken: Build = |template, parts| {
            let key = OURS(template, parts)?;
            Some(key.split('~').next()?.to_owned())
        };
        assert!(finds_in(broken, "shows others"));
    }

    #[test]
    fn a_key_that_is_cut_with_one_hash_for_all_is_found() {
        let broken: Build = |template, parts| {
            let key = OURS(template, parts)?;
            Some(match key.split_once('~') {
                Some((shown, _)) => format!("{shown}~{}", "0".repeat(64)),
                None => key,
            })
        };
        assert!(finds_in(broken, "shared or not"));
    }

    #[test]
    fn a_key_in_which_case_is_lost_is_found() {
        let broken: Build = |template, parts| Some(OURS(template, parts)?.to_lowercase());
        assert!(finds_in(broken, "shows others"));
    }

    #[test]
    fn a_key_that_is_not_the_one_of_its_tuple_is_found() {
        let broken: Build = |template, parts| {
            let literals = template.literals;
            let punctuation = match template.punctuation {
                ":" => ":-",
                other => other,
            };
            OURS(
                &Template {
                    literals,
                    punctuation,
                },
                parts,
            )
        };
        assert!(finds_in(broken, "not as a tuple"));
    }
}

#[test]
fn a_reader_of_keys_that_trims_is_found() {
    let broken: key_text::Parse = |text| Key::parse(text.trim()).ok();
    let property = |bytes: &[u8]| key_text::check(broken, bytes);
    assert!(finds("key_text", "another text", property));
}

#[test]
fn a_reader_of_keys_that_takes_any_parts_is_found() {
    let broken: key_text::Parse = |text| {
        let (prefix, parts) = text.split_once("::")?;
        let mut key = KeyBuilder::new(prefix, "");
        key.literal(parts);
        key.finish().ok()
    };
    for about in ["white space", "half a hash", "half an escape"] {
        let property = |bytes: &[u8]| key_text::check(broken, bytes);
        assert!(finds("key_text", about, property), "{about}");
    }
}

#[test]
fn a_token_whose_hash_is_taken_as_it_is_is_found() {
    let broken: token::KeyOf = |text| {
        let key = Key::parse(&format!("order:submit::{text}"));
        let hash = key.ok().filter(|_| text.starts_with('~'));
        hash.map_or_else(|| (token::OURS)(text), |key| key.as_str().to_owned())
    };
    let property = |bytes: &[u8]| token::check(broken, bytes);
    assert!(finds("token", "a hash was taken as it is", property));
}

#[test]
fn a_token_that_stands_in_its_key_is_found() {
    let broken: token::KeyOf = |text| format!("order:submit::{text}");
    let property = |bytes: &[u8]| token::check(broken, bytes);
    assert!(finds("token", "is no hash", property));
}

#[test]
fn a_token_of_which_blanks_are_cut_is_found() {
    let broken: token::KeyOf = |text| (token::OURS)(text.trim());
    let property = |bytes: &[u8]| token::check(broken, bytes);
    assert!(finds("token", "shared or not", property));
}

mod fingerprints {
    use super::*;

    fn finds_in<P: Print>(about: &str) -> bool {
        finds("fingerprint", about, fingerprint::check::<P>)
    }

    #[test]
    fn a_fingerprint_that_depends_on_an_order_is_found() {
        struct Ordered;
        impl Print for Ordered {
            fn of<P: Serialize>(payload: &P) -> Option<Vec<u8>> {
                serde_json::to_vec(payload).ok()
            }
        }
        assert!(finds_in::<Ordered>("the order of"));
    }

    #[test]
    fn a_fingerprint_that_some_payloads_do_not_have_is_found() {
        struct Partial;
        impl Print for Partial {
            fn of<P: Serialize>(payload: &P) -> Option<Vec<u8>> {
                let short = serde_json::to_vec(payload).ok()?.len() < 64;
                short.then(|| Ours::of(payload))?
            }
        }
        assert!(finds_in::<Partial>("no fingerprint of"));
    }

    #[test]
    fn a_fingerprint_that_takes_nothing_for_something_is_found() {
        struct Json;
        impl Print for Json {
            fn of<P: Serialize>(payload: &P) -> Option<Vec<u8>> {
                let mut value = serde_json::to_value(payload).ok()?;
                value.sort_all_objects();
                serde_json::to_vec::<Value>(&value).ok()
            }
        }
        assert!(finds_in::<Json>("an option of"));
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
        assert!(finds_in::<Unbounded>("shared or not"));
    }
}

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod rows {
    use super::super::row::{OURS, Read, check};
    use super::finds;
    use crate::record::Slot;

    fn finds_in(broken: Read, about: &str) -> bool {
        finds("row", about, |bytes| check(broken, bytes))
    }

    #[test]
    fn a_reader_of_rows_that_loses_a_field_is_found() {
        let broken: Read = |row, now| match OURS(row, now) {
            Slot::Record(mut record) => {
                record.fingerprint = None;
                Slot::Record(record)
            }
            slot => slot,
        };
        assert!(finds_in(broken, "not what it was made of"));
    }

    #[test]
    fn a_reader_of_rows_that_does_not_compare_the_columns_is_found() {
        let broken: Read = |row, now| match OURS(row, now) {
            Slot::Damaged => row.packed_only(),
            slot => slot,
        };
        assert!(finds_in(broken, "not damaged"));
    }

    #[test]
    fn a_changed_row_that_counts_as_absent_is_found() {
        let broken: Read = |row, now| match OURS(row, now) {
            Slot::Damaged => Slot::Absent,
            slot => slot,
        };
        assert!(finds_in(broken, "not damaged"));
    }

    #[test]
    fn a_changed_row_that_stays_for_ever_is_found() {
        let broken: Read = |row, now| match OURS(row, now) {
            Slot::Absent => Slot::Damaged,
            slot => slot,
        };
        assert!(finds_in(broken, "not over"));
    }

    #[test]
    fn a_reader_of_rows_that_ignores_what_follows_a_record_is_found() {
        let broken: Read = |row, now| match OURS(row, now) {
            Slot::Damaged => row.cut_short(),
            slot => slot,
        };
        assert!(finds_in(broken, "read from foreign bytes"));
    }
}
