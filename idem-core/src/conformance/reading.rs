//! Reading records, and hearing of their ends.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Harness;
use super::caller::{Caller, outcomes, success};
use super::trial::{Stop, Trial, Tried};
use crate::record::{
    ClaimReply, Forget, OnAbandoned, OperatorReply, Outcome, Resolve, Slot, Status, Verdict,
};
use crate::store::{Answer, Cursor, Page, Scan, Store, StoreKey, Watch};

/// Reads all pages of a scan. A store may show a record twice, but not two different ones.
async fn scanned<H: Harness>(
    t: &Trial<'_, H>,
    prefix: &str,
    page_size: u32,
) -> Result<BTreeMap<String, Slot>, Stop> {
    const ENDLESS: usize = 100_000;
    let mut seen = BTreeMap::new();
    let mut cursor: Option<Cursor> = None;
    for _ in 0..ENDLESS {
        let scan = Scan {
            prefix: prefix.to_owned(),
            cursor: cursor.take(),
            page_size,
        };
        let Answer { reply, .. } = t.store.scan(&scan).await?;
        let Page { entries, next } = reply;
        seen.extend(entries);
        match next {
            Some(next) => cursor = Some(next),
            None => return Ok(seen),
        }
    }
    panic!("the scan does not end")
}

pub(super) async fn a_scan_shows_what_peek_shows_and_nothing_else<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut expected = BTreeMap::new();
    let mut note = async |key: &StoreKey| {
        match t.peek(key).await? {
            Slot::Absent => {}
            slot => {
                expected.insert(key.as_str().to_owned(), slot);
            }
        }
        Ok::<(), Stop>(())
    };
    for _ in 0..5 {
        let mut running = t.caller(&t.key());
        running.granted().await?;
        note(&running.key).await?;
        for outcome in outcomes() {
            let mut a = t.caller(&t.key());
            a.granted().await?;
            a.settled(outcome).await?;
            note(&a.key).await?;
        }
    }
    let damaged = t.key();
    t.corrupt(&damaged).await;
    note(&damaged).await?;

    for page_size in [1, 7, 1000] {
        let seen = scanned(t, &t.keys_begin_with(), page_size).await?;
        assert_eq!(seen, expected, "in pages of {page_size}");
    }
    let first = expected.keys().next().cloned().unwrap_or_default();
    let seen = scanned(t, &first, 10).await?;
    let begins_so = |text: &&String| text.starts_with(&first);
    assert!(seen.keys().eq(expected.keys().filter(begins_so)));
    let seen = scanned(t, "conformance:law::nothing-begins-so", 10).await?;
    assert_eq!(seen, BTreeMap::new());
    Ok(())
}

pub(super) async fn a_scan_does_not_take_its_prefix_for_a_pattern<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    t.caller(&t.key()).granted().await?;
    let begin = t.keys_begin_with();
    for pattern in ["*", "?", "[0-9]", "%", "_", "\\"] {
        let seen = scanned(t, &format!("{begin}{pattern}"), 10).await?;
        assert_eq!(seen, BTreeMap::new(), "{pattern} was taken for a pattern");
        let seen = scanned(t, pattern, 10).await?;
        assert_eq!(seen, BTreeMap::new(), "{pattern} was taken for a pattern");
    }
    Ok(())
}

/// A prefix may stop before the parts: what begins so is shown, whatever its type.
pub(super) async fn a_scan_shows_the_records_of_several_types<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut expected = Vec::new();
    for kind in ["b", "a", "c", "a:more"] {
        for _ in 0..3 {
            let key = t.key_of_type(kind);
            t.caller(&key).granted().await?;
            expected.push(key.as_str().to_owned());
        }
    }
    expected.sort_unstable();
    for page_size in [1, 2, 1000] {
        let seen = scanned(t, &t.types_begin_with(), page_size).await?;
        assert!(
            seen.keys().eq(&expected),
            "in pages of {page_size}: {seen:?}"
        );
    }
    Ok(())
}

pub(super) async fn a_record_that_stays_is_seen_while_others_come_and_go<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut staying = Vec::new();
    for _ in 0..30 {
        let key = t.key();
        t.caller(&key).granted().await?;
        staying.push(key);
    }
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let scan = Scan {
            prefix: t.keys_begin_with(),
            cursor,
            page_size: 4,
        };
        let Page { entries, next } = t.store.scan(&scan).await?.reply;
        seen.extend(entries.into_iter().map(|(text, _)| text));
        let mut passing = t.caller(&t.key());
        passing.granted().await?;
        passing.settled(Outcome::Release).await?;
        match next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    for key in &staying {
        assert!(
            seen.iter().any(|text| text == key.as_str()),
            "{key:?} was missed"
        );
    }
    Ok(())
}

pub(super) async fn an_expired_record_is_not_scanned<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let mut a = t.caller(&t.key()).with(|claim| {
        claim.policy = OnAbandoned::Rerun;
        claim.terms = t.short();
    });
    a.granted().await?;
    t.until_past(t.heard().after(t.short().expire).ceil_millis())
        .await?;
    let seen = scanned(t, &t.keys_begin_with(), 10).await?;
    assert_eq!(seen, BTreeMap::new());
    Ok(())
}

/// Waits for a report for longer than any that comes by itself would take.
async fn is_told(watch: &mut Watch) -> bool {
    const PATIENCE: Duration = Duration::from_secs(10);
    tokio::time::timeout(PATIENCE, watch.changed())
        .await
        .is_ok()
}

/// A live attempt for whose end somebody waits, as an engine does it: subscribe, claim again,
/// sleep.
async fn watched<'t, 'a, H: Harness>(
    t: &'t Trial<'a, H>,
) -> Result<(Caller<'t, 'a, H>, Watch), Stop> {
    let mut a = t.caller(&t.key());
    a.granted().await?;
    let watch = t.store.watch(&a.key).await?;
    let mut waiting = t.caller(&a.key).with(|claim| claim.wait = true);
    assert!(matches!(
        waiting.claim().await?,
        ClaimReply::InProgress { .. }
    ));
    Ok((a, watch))
}

pub(super) async fn each_end_of_an_attempt_is_reported<H: Harness>(t: &Trial<'_, H>) -> Tried {
    if !t.pushes() {
        return Ok(());
    }
    for outcome in outcomes() {
        let (mut a, mut watch) = watched(t).await?;
        a.settled(outcome.clone()).await?;
        assert!(is_told(&mut watch).await, "nobody was told of {outcome:?}");
    }
    Ok(())
}

pub(super) async fn an_operators_word_is_reported<H: Harness>(t: &Trial<'_, H>) -> Tried {
    if !t.pushes() {
        return Ok(());
    }
    for verdict in [Verdict::NotDone, Verdict::Done(None)] {
        let (a, mut watch) = watched(t).await?;
        let (fence, force) = (a.echo.grant.fence, true);
        let resolve = Resolve {
            fence,
            verdict,
            force,
        };
        assert_eq!(t.resolve(&a.key, &resolve).await?, OperatorReply::Done);
        assert!(is_told(&mut watch).await, "nobody was told of {resolve:?}");
    }
    for release in [false, true] {
        let (a, mut watch) = watched(t).await?;
        let record = t.record(&a.key).await?;
        let forget = Forget {
            fence: record.fence,
            status: Status::Processing,
            release,
            force: true,
        };
        assert_eq!(t.forget(&a.key, &forget).await?, OperatorReply::Done);
        assert!(is_told(&mut watch).await, "nobody was told of {forget:?}");
    }
    Ok(())
}

pub(super) async fn a_waiter_of_the_first_attempt_hears_the_end_of_its_takeover<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    if !t.pushes() {
        return Ok(());
    }
    let mut dead = t.caller(&t.key()).with(|claim| {
        claim.policy = OnAbandoned::Rerun;
        claim.terms = t.short_lease();
    });
    dead.granted().await?;
    let mut watch = t.store.watch(&dead.key).await?;
    let mut waiting = t.caller(&dead.key).with(|claim| {
        claim.policy = OnAbandoned::Rerun;
        claim.wait = true;
    });
    let reply = waiting.claim().await?;
    t.in_time_for(dead.echo.answered.after(t.pace))?;
    assert!(matches!(reply, ClaimReply::InProgress { .. }));
    dead.lapse().await?;

    let mut second = t
        .caller(&dead.key)
        .with(|claim| claim.policy = OnAbandoned::Rerun);
    second.granted().await?;
    second.settled(success()).await?;
    assert!(is_told(&mut watch).await);
    Ok(())
}

pub(super) async fn each_of_many_waiters_is_told<H: Harness>(t: &Trial<'_, H>) -> Tried {
    if !t.pushes() {
        return Ok(());
    }
    let (mut a, first) = watched(t).await?;
    let mut watches = vec![first];
    for _ in 0..20 {
        watches.push(t.store.watch(&a.key).await?);
    }
    a.settled(success()).await?;
    for watch in &mut watches {
        assert!(is_told(watch).await);
    }
    Ok(())
}

pub(super) async fn reading_changes_nothing<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let mut a = t.caller(&t.key());
    a.granted().await?;
    let before = t.peek(&a.key).await?;
    let left = t.time_to_live(&a.key).await;
    for _ in 0..20 {
        scanned(t, &t.keys_begin_with(), 10).await?;
        assert_eq!(t.peek(&a.key).await?, before);
    }
    assert!(t.time_to_live(&a.key).await <= left);
    Ok(())
}
