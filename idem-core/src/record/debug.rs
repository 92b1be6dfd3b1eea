//! `Debug` of what holds a result or an error of the user's: it shows how large that is, and never
//! what it says.

use std::fmt::{self, Debug, Formatter};

use bytes::Bytes;

use super::{ClaimReply, Current, Outcome, RefuseReply, State, Verdict};

/// A payload, by its size.
struct Size<'a>(&'a Bytes);

impl Debug for Size<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

fn size(payload: Option<&Bytes>) -> Option<Size<'_>> {
    payload.map(Size)
}

fn with_result(f: &mut Formatter<'_>, name: &str, result: Option<&Bytes>) -> fmt::Result {
    f.debug_struct(name).field("result", &size(result)).finish()
}

fn with_error(f: &mut Formatter<'_>, error: &Bytes) -> fmt::Result {
    f.debug_tuple("FailedWith").field(&Size(error)).finish()
}

impl Debug for State {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Processing(attempt) => f.debug_tuple("Processing").field(attempt).finish(),
            Self::Success { at, result } => f
                .debug_struct("Success")
                .field("at", at)
                .field("result", &size(result.as_ref()))
                .finish(),
            Self::Failed { at, error } => f
                .debug_struct("Failed")
                .field("at", at)
                .field("error", &size(error.as_ref()))
                .finish(),
            Self::Issued => f.write_str("Issued"),
            Self::Refused => f.write_str("Refused"),
            Self::Closed { by_operator } => f
                .debug_struct("Closed")
                .field("by_operator", by_operator)
                .finish(),
        }
    }
}

impl Debug for Outcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success(result) => f
                .debug_tuple("Success")
                .field(&size(result.as_ref()))
                .finish(),
            Self::SuccessForget => f.write_str("SuccessForget"),
            Self::Failed => f.write_str("Failed"),
            Self::FailedWith(error) => with_error(f, error),
            Self::Release => f.write_str("Release"),
            Self::Abandon => f.write_str("Abandon"),
            Self::GiveUp => f.write_str("GiveUp"),
        }
    }
}

impl Debug for ClaimReply {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claimed(grant) => f.debug_tuple("Claimed").field(grant).finish(),
            Self::InProgress { since, lease_left } => f
                .debug_struct("InProgress")
                .field("since", since)
                .field("lease_left", lease_left)
                .finish(),
            Self::OutcomeUnknown => f.write_str("OutcomeUnknown"),
            Self::Completed { result } => with_result(f, "Completed", result.as_ref()),
            Self::FailedWith(error) => with_error(f, error),
            Self::Refused => f.write_str("Refused"),
            Self::Mismatch => f.write_str("Mismatch"),
            Self::TokenRejected => f.write_str("TokenRejected"),
            Self::Closed => f.write_str("Closed"),
            Self::Late => f.write_str("Late"),
            Self::Damaged => f.write_str("Damaged"),
        }
    }
}

impl Debug for RefuseReply {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::InProgress { since, lease_left } => f
                .debug_struct("InProgress")
                .field("since", since)
                .field("lease_left", lease_left)
                .finish(),
            Self::Completed { result } => with_result(f, "Completed", result.as_ref()),
            Self::FailedWith(error) => with_error(f, error),
            Self::Refused => f.write_str("Refused"),
            Self::OutcomeUnknown => f.write_str("OutcomeUnknown"),
            Self::TokenRejected => f.write_str("TokenRejected"),
            Self::Late => f.write_str("Late"),
            Self::Damaged => f.write_str("Damaged"),
        }
    }
}

impl Debug for Current {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success { result } => with_result(f, "Success", result.as_ref()),
            Self::Nothing => f.write_str("Nothing"),
            Self::Processing => f.write_str("Processing"),
            Self::Failed => f.write_str("Failed"),
            Self::Issued => f.write_str("Issued"),
            Self::Refused => f.write_str("Refused"),
        }
    }
}

impl Debug for Verdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotDone => f.write_str("NotDone"),
            Self::Done(result) => f.debug_tuple("Done").field(&size(result.as_ref())).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::StoreTime;

    // Y04
    #[test]
    fn no_debug_text_tells_a_payload() {
        let payload = Bytes::from_static(b"s3cret");
        let result = Some(payload.clone());
        let at = StoreTime::default();
        let told: [Box<dyn Debug>; 10] = [
            Box::new(State::Success {
                at,
                result: result.clone(),
            }),
            Box::new(State::Failed {
                at,
                error: result.clone(),
            }),
            Box::new(Outcome::Success(result.clone())),
            Box::new(Outcome::FailedWith(payload.clone())),
            Box::new(ClaimReply::Completed {
                result: result.clone(),
            }),
            Box::new(ClaimReply::FailedWith(payload.clone())),
            Box::new(RefuseReply::Completed {
                result: result.clone(),
            }),
            Box::new(RefuseReply::FailedWith(payload)),
            Box::new(Current::Success {
                result: result.clone(),
            }),
            Box::new(Verdict::Done(result)),
        ];
        for told in told.map(|told| format!("{told:?}")) {
            assert!(!told.contains("s3cret"), "{told}");
            assert!(told.contains("6 bytes"), "{told}");
        }
    }
}
