//! Records and replies in words.

use super::NOW;
use crate::record::{
    ClaimReply, Current, Grant, Owner, Processing, Record, RefuseReply, RenewReply, Reply,
    SettleReply, Slot, State,
};

pub(super) fn slot_in_words(slot: &Slot) -> String {
    match slot {
        Slot::Absent => "absent".into(),
        Slot::Damaged => "damaged".into(),
        Slot::Record(record) => record_in_words(record),
    }
}

fn record_in_words(record: &Record) -> String {
    let who = format!("{} {}", letter(record.owner), record.attempt);
    match &record.state {
        State::Processing(attempt) => format!("processing {who} {}", marks_in_words(attempt)),
        State::Success { result, .. } => joined("success", &who, &text(result.as_deref())),
        State::Failed { error, .. } => joined("failed", &who, &text(error.as_deref())),
        State::Issued => format!("issued {who}"),
        State::Refused => "refused".into(),
        State::Closed { by_operator: true } => {
            format!("closed {} by operator", letter(record.owner))
        }
        State::Closed { by_operator: false } => format!("closed {}", letter(record.owner)),
    }
}

fn marks_in_words(attempt: &Processing) -> String {
    let is_live = attempt.lease_until > NOW;
    let marks = [
        (is_live, "live"),
        (!is_live, "lapsed"),
        (attempt.checkpoint, "checkpoint"),
        (attempt.takeover, "takeover"),
        (attempt.doubt, "doubt"),
        (attempt.given_up, "given-up"),
        (attempt.waiters, "waiters"),
    ];
    let set = marks.iter().filter(|(is_set, _)| *is_set);
    set.map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
}

fn letter(owner: Owner) -> String {
    match owner {
        Owner::NOBODY => "nobody".into(),
        owner => char::from(owner.as_bytes()[0]).into(),
    }
}

fn text(bytes: Option<&[u8]>) -> String {
    bytes.map_or_else(String::new, |bytes| String::from_utf8_lossy(bytes).into())
}

fn joined(word: &str, who: &str, bytes: &str) -> String {
    let words = [word, who, bytes].into_iter();
    words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

pub(super) fn reply_in_words(reply: &Reply) -> String {
    match reply {
        Reply::Claim(reply) => claim_in_words(reply),
        Reply::Renew(RenewReply::Renewed { rebuilt: true }) => "Renewed rebuilt".into(),
        Reply::Renew(RenewReply::Renewed { rebuilt: false }) => "Renewed".into(),
        Reply::Renew(reply) => format!("{reply:?}"),
        Reply::Settle(reply) => settle_in_words(reply),
        Reply::Issue(reply) => format!("{reply:?}"),
        Reply::Forget(reply) | Reply::Resolve(reply) => format!("{reply:?}"),
        Reply::Refuse(reply) => refuse_in_words(reply),
    }
}

fn claim_in_words(reply: &ClaimReply) -> String {
    match reply {
        ClaimReply::Claimed(grant) => grant_in_words(grant),
        ClaimReply::InProgress { lease_left, .. } => format!("InProgress {lease_left:?}"),
        ClaimReply::Completed { result } => joined("Completed", "", &text(result.as_deref())),
        ClaimReply::FailedWith(error) => format!("FailedWith {}", text(Some(error))),
        reply => format!("{reply:?}"),
    }
}

fn grant_in_words(grant: &Grant) -> String {
    let marks = [
        (grant.takeover, " takeover"),
        (grant.doubt, " doubt"),
        (grant.token.is_some(), " token"),
    ];
    let set = marks.iter().filter(|(is_set, _)| *is_set);
    let marks: String = set.map(|(_, word)| *word).collect();
    format!("Claimed {}{marks}", grant.number)
}

fn settle_in_words(reply: &SettleReply) -> String {
    match reply {
        SettleReply::Superseded {
            current: Current::Success { result },
        } => joined("Superseded", "Success", &text(result.as_deref())),
        SettleReply::Superseded { current } => format!("Superseded {current:?}"),
        reply => format!("{reply:?}"),
    }
}

fn refuse_in_words(reply: &RefuseReply) -> String {
    match reply {
        RefuseReply::InProgress { lease_left, .. } => format!("InProgress {lease_left:?}"),
        RefuseReply::Completed { result } => joined("Completed", "", &text(result.as_deref())),
        RefuseReply::FailedWith(error) => format!("FailedWith {}", text(Some(error))),
        reply => format!("{reply:?}"),
    }
}
