//! Replies: each has one meaning, and one set of verbs that may hear it.

use bytes::BufMut;

use super::{Answer, Reply, decode};
use crate::record::{
    ClaimReply, Current, Grant, IssueReply, OperatorReply, RefuseReply, RenewReply, SettleReply,
    StoreTime,
};

/// A way to read replies, and to tell which verbs hear one, in the order of [`VERBS`].
#[derive(Clone, Copy)]
struct Reader {
    read: fn(Vec<u8>) -> Option<Answer<Reply>>,
    hears: fn(&Answer<Reply>) -> [bool; 6],
}

const OURS: Reader = Reader {
    read: |bytes| decode(bytes).ok(),
    hears: |answer| {
        let again = || answer.clone();
        [
            again().into_verb::<ClaimReply>().is_ok(),
            again().into_verb::<RenewReply>().is_ok(),
            again().into_verb::<SettleReply>().is_ok(),
            again().into_verb::<IssueReply>().is_ok(),
            again().into_verb::<OperatorReply>().is_ok(),
            again().into_verb::<RefuseReply>().is_ok(),
        ]
    },
};

/// The kinds that each verb may hear; anything else would be a word of another script.
const VERBS: [&str; 6] = [
    "CPSsFUXMTELD",
    "RBGNLD",
    "KAVNLD",
    "IOLD",
    "YZ",
    "XPUSsFTLD",
];

/// Marks of a grant that its owner hears.
const MARKS: u8 = 2 | 4;
const MARKS_AT: usize = 26;

pub(crate) fn check(bytes: &[u8]) {
    check_reader(OURS, bytes);
}

fn check_reader(reader: Reader, bytes: &[u8]) {
    let Some(answer) = (reader.read)(bytes.to_vec()) else {
        return;
    };
    assert_eq!(write(&answer), plain(bytes), "{answer:?} is another reply");
    for (kinds, hears) in VERBS.iter().zip((reader.hears)(&answer)) {
        let may = kinds.contains(char::from(bytes[0]));
        assert_eq!(hears, may, "{answer:?} at the verb of {kinds}");
    }
}

/// The bytes without what nobody asks for: a lease that is over is over, however long ago, and not
/// all marks of a record are its owner's business.
fn plain(bytes: &[u8]) -> Vec<u8> {
    let mut plain = bytes.to_vec();
    match bytes[0] {
        b'C' => plain[MARKS_AT] &= MARKS,
        b'P' if bytes[15..22] < bytes[1..8] => plain[15..22].copy_from_slice(&bytes[1..8]),
        _ => {}
    }
    plain
}

/// The bytes of an answer, as the scripts write them.
fn write(answer: &Answer<Reply>) -> Vec<u8> {
    let mut out = vec![kind(&answer.reply)];
    put_time(&mut out, answer.now);
    match &answer.reply {
        Reply::Claimed(grant) => put_grant(&mut out, grant),
        Reply::InProgress { since, lease_left } => {
            put_time(&mut out, *since);
            put_time(&mut out, answer.now.after(*lease_left));
        }
        Reply::Success(Some(rest)) | Reply::FailedWith(rest) => out.put_slice(rest),
        Reply::Superseded(current) => put_current(&mut out, current),
        Reply::Record { expires_at, bytes } => {
            put_time(&mut out, *expires_at);
            out.put_slice(bytes);
        }
        _ => {}
    }
    out
}

fn put_time(out: &mut Vec<u8>, time: StoreTime) {
    out.put_uint(time.as_micros(), 7);
}

fn put_grant(out: &mut Vec<u8>, grant: &Grant) {
    out.put_uint(grant.fence.as_u64(), 7);
    out.put_u32(grant.number);
    put_time(out, grant.since);
    out.put_u8(u8::from(grant.takeover) * 2 + u8::from(grant.doubt) * 4);
    if let Some(token) = &grant.token {
        out.put_slice(token.subject.as_bytes());
        put_time(out, token.until);
    }
}

fn put_current(out: &mut Vec<u8>, current: &Current) {
    match current {
        Current::Nothing => out.put_u8(0),
        Current::Processing => out.put_u8(1),
        Current::Success {
            result: Some(result),
        } => {
            out.put_u8(2);
            out.put_slice(result);
        }
        Current::Success { result: None } => out.put_u8(3),
        Current::Failed => out.put_u8(4),
        Current::Issued => out.put_u8(5),
        Current::Refused => out.put_u8(6),
    }
}

fn kind(reply: &Reply) -> u8 {
    match reply {
        Reply::Claimed(_) => b'C',
        Reply::InProgress { .. } => b'P',
        Reply::Success(Some(_)) => b'S',
        Reply::Success(None) => b's',
        Reply::FailedWith(_) => b'F',
        Reply::OutcomeUnknown => b'U',
        Reply::Refused => b'X',
        Reply::Mismatch => b'M',
        Reply::TokenRejected => b'T',
        Reply::Ended => b'E',
        Reply::Renewed => b'R',
        Reply::Rebuilt => b'B',
        Reply::Lost => b'G',
        Reply::Settled => b'K',
        Reply::Adopted => b'A',
        Reply::Superseded(_) => b'V',
        Reply::Issued => b'I',
        Reply::Taken => b'O',
        Reply::Done => b'Y',
        Reply::Changed => b'Z',
        Reply::Record { .. } => b'Q',
        Reply::Nothing => b'N',
        Reply::Late => b'L',
        Reply::Damaged => b'D',
    }
}

#[cfg(test)]
mod tests {
    use super::{OURS, Reader, Reply, check_reader};
    use crate::fuzzing::tests::finds;
    use crate::record::RenewReply;

    fn is_another_reply(broken: Reader) -> bool {
        let property = |bytes: &[u8]| check_reader(broken, bytes);
        finds("reply", "is another reply", property)
    }

    #[test]
    fn a_reply_that_goes_on_behind_its_end_is_found() {
        let read = |bytes: Vec<u8>| {
            let short = bytes[..bytes.len().saturating_sub(1)].to_vec();
            (OURS.read)(bytes).or_else(|| (OURS.read)(short))
        };
        assert!(is_another_reply(Reader { read, ..OURS }));
    }

    #[test]
    fn an_unknown_kind_that_is_taken_for_a_permission_is_found() {
        let read = |mut bytes: Vec<u8>| {
            let known = (OURS.read)(bytes.clone());
            known.or_else(|| {
                *bytes.first_mut()? = b'R';
                (OURS.read)(bytes)
            })
        };
        assert!(is_another_reply(Reader { read, ..OURS }));
    }

    #[test]
    fn a_kind_that_is_taken_for_another_is_found() {
        let read = |bytes| {
            let mut answer = (OURS.read)(bytes)?;
            if RenewReply::try_from(answer.reply.clone()).is_ok() {
                answer.reply = Reply::Renewed;
            }
            Some(answer)
        };
        assert!(is_another_reply(Reader { read, ..OURS }));
    }

    #[test]
    fn a_verb_that_hears_the_words_of_another_is_found() {
        let broken = Reader {
            hears: |answer| {
                let [claim, renew, settle, issue, operator, refuse] = (OURS.hears)(answer);
                [claim, renew, settle || renew, issue, operator, refuse]
            },
            ..OURS
        };
        let property = |bytes: &[u8]| check_reader(broken, bytes);
        assert!(finds("reply", "at the verb of", property));
    }
}
