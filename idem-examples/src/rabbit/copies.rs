//! What a copy of a message says.

use std::collections::BTreeMap;

use idem_core::consumer::{Action, REASON_HEADER, RETRIES_HEADER};
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};

/// On disk, for queues that are not always.
pub(super) const PERSISTENT: u8 = 2;

/// Names of other queues, to which the broker gives whatever is published with it: they have had
/// this message.
const CARBON_COPY: &str = "CC";

/// How often the message has failed before; 0 where it does not say. Tools that publish a message
/// anew write a number as they like.
pub(super) fn retries(properties: &BasicProperties) -> u32 {
    let headers = properties.headers().as_ref();
    let says = headers.and_then(|headers| headers.inner().get(RETRIES_HEADER));
    let number = match says {
        Some(AMQPValue::ShortShortInt(number)) => i64::from(*number),
        Some(AMQPValue::ShortShortUInt(number)) => i64::from(*number),
        Some(AMQPValue::ShortInt(number)) => i64::from(*number),
        Some(AMQPValue::ShortUInt(number)) => i64::from(*number),
        Some(AMQPValue::LongInt(number)) => i64::from(*number),
        Some(AMQPValue::LongUInt(number)) => i64::from(*number),
        Some(AMQPValue::LongLongInt(number)) => *number,
        _ => 0,
    };
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

/// The properties of the copy that `action` asks for.
pub(super) fn copied(original: &BasicProperties, action: Action) -> BasicProperties {
    let mut headers = headers(original);
    if let Action::Delay { retries, .. } = action {
        headers.insert(RETRIES_HEADER.into(), AMQPValue::LongUInt(retries));
    }
    if let Some(reason) = action.reason_code() {
        headers.insert(REASON_HEADER.into(), AMQPValue::LongString(reason.into()));
    }
    with_headers(original, headers)
}

/// The properties of a parked message that goes on. What has failed until somebody looked counts no
/// more: with its retries used up, the next failure would be its last.
pub(super) fn taken_up(parked: &BasicProperties) -> BasicProperties {
    let mut headers = headers(parked);
    headers.remove(REASON_HEADER);
    headers.remove(RETRIES_HEADER);
    with_headers(parked, headers)
}

type Headers = BTreeMap<lapin::types::ShortString, AMQPValue>;

fn headers(properties: &BasicProperties) -> Headers {
    let headers = properties.headers().as_ref();
    let mut headers = headers.map_or_else(Headers::new, |headers| headers.inner().clone());
    headers.remove(CARBON_COPY);
    headers
}

/// All but three: a time to live would let a copy vanish, a user has to be the one who publishes,
/// and every copy is kept on disk.
fn with_headers(original: &BasicProperties, headers: Headers) -> BasicProperties {
    let mut copy = BasicProperties::default()
        .with_delivery_mode(PERSISTENT)
        .with_headers(FieldTable::from(headers));
    macro_rules! keep {
        ($($field:ident by $with:ident),*) => {
            $(if let Some(value) = original.$field().clone() {
                copy = copy.$with(value);
            })*
        };
    }
    keep!(
        message_id by with_message_id,
        content_type by with_content_type,
        content_encoding by with_content_encoding,
        priority by with_priority,
        correlation_id by with_correlation_id,
        reply_to by with_reply_to,
        timestamp by with_timestamp,
        kind by with_type,
        app_id by with_app_id,
        cluster_id by with_cluster_id
    );
    copy
}

#[cfg(test)]
mod tests {
    use super::*;
    use idem_core::consumer::Reason;

    fn saying(name: &str, value: AMQPValue) -> BasicProperties {
        let mut headers = FieldTable::default();
        headers.insert(name.into(), value);
        BasicProperties::default().with_headers(headers)
    }

    #[test]
    fn the_retries_are_any_number_that_can_be_one() {
        for (value, number) in [
            (AMQPValue::LongUInt(3), 3),
            (AMQPValue::LongInt(3), 3),
            (AMQPValue::LongLongInt(3), 3),
            (AMQPValue::ShortShortUInt(3), 3),
            (AMQPValue::LongInt(-1), 0),
            (AMQPValue::LongLongInt(i64::MIN), 0),
            (AMQPValue::LongLongInt(i64::MAX), u32::MAX),
            (AMQPValue::LongString("3".into()), 0),
            (AMQPValue::Void, 0),
        ] {
            assert_eq!(
                retries(&saying(RETRIES_HEADER, value.clone())),
                number,
                "{value:?}"
            );
        }
    }

    #[test]
    fn a_copy_goes_to_nobody_who_had_the_original() {
        let original = saying("CC", AMQPValue::LongString("audit".into()));
        let reason = Reason::Rejected;
        for copy in [
            copied(&original, Action::Dead { reason }),
            taken_up(&original),
        ] {
            assert!(!copy.headers().as_ref().unwrap().inner().contains_key("CC"));
        }
    }

    #[test]
    fn a_parked_message_that_goes_on_has_failed_never_and_has_no_reason() {
        let parked = copied(
            &saying(RETRIES_HEADER, AMQPValue::LongUInt(10)),
            Action::Park,
        );
        assert_eq!(retries(&parked), 10);
        let taken_up = taken_up(&parked);
        assert_eq!(retries(&taken_up), 0);
        let headers = taken_up.headers().as_ref().unwrap().inner();
        assert!(headers.is_empty(), "{headers:?}");
    }

    #[test]
    fn a_copy_keeps_id_and_headers_and_says_what_became_of_the_message() {
        let mut headers = FieldTable::default();
        headers.insert("trace".into(), AMQPValue::LongString("t-1".into()));
        let original = BasicProperties::default()
            .with_message_id("m-1".into())
            .with_expiration("1000".into())
            .with_user_id("guest".into())
            .with_headers(headers);
        let by = std::time::Duration::ZERO;
        let delayed = copied(&original, Action::Delay { by, retries: 3 });
        assert_eq!(retries(&original), 0);
        assert_eq!(retries(&delayed), 3);
        let reason = Reason::Rejected;
        let dead = copied(&delayed, Action::Dead { reason });
        assert_eq!(dead.message_id(), original.message_id());
        assert_eq!((dead.expiration(), dead.user_id()), (&None, &None));
        let says = |name| dead.headers().as_ref().unwrap().inner().get(name).cloned();
        let text = |text: &str| Some(AMQPValue::LongString(text.into()));
        assert_eq!(says("trace"), text("t-1"));
        assert_eq!(says(REASON_HEADER), text("rejected"));
        assert_eq!(retries(&dead), 3);
    }
}
