//! What an engine makes of the policy of a lock.

use std::time::Duration;

use super::{EngineTimes, InProgress, Policy, Settings, invalid};
use crate::error::Error;

/// For how long a holder that died is remembered, so that the next one is told; and the longest
/// lease of a lock.
const TRACE: Duration = Duration::from_hours(24);

impl Policy {
    /// This policy as that of a lock: of the engine's own it takes the lease and the message only.
    /// A lock has no result and no outcome to hold; who finds one abandoned takes it over, and who
    /// gets no answer has no lock.
    pub(crate) fn settings_of_lock(
        self,
        defaults: &Self,
        times: &EngineTimes,
    ) -> Result<Settings, Error> {
        if let Some(lease) = self.lease
            && lease > TRACE
        {
            return Err(invalid(format!(
                "lease is {lease:?}; the longest of a lock is {TRACE:?}"
            )));
        }
        let in_progress = match self.in_progress {
            Some(InProgress::Wait) => self.wait_in_progress(),
            Some(InProgress::Reject) | None => self.reject_in_progress(),
        };
        in_progress
            .expire(TRACE)
            .own_checkpoint()
            .rerun_abandoned()
            .error_on_store_error()
            .settings(defaults, times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::OnStoreError;
    use crate::record::OnAbandoned;

    const TIMES: EngineTimes = EngineTimes {
        doubt: Duration::from_secs(1),
        limit: Duration::from_secs(2),
    };

    #[test]
    fn what_an_engine_says_about_requests_does_not_reach_a_lock() {
        let engine = Policy::new()
            .expire(Duration::from_secs(1))
            .wait_in_progress()
            .hold_abandoned()
            .run_on_store_error();
        let settings = Policy::new().settings_of_lock(&engine, &TIMES).unwrap();
        assert_eq!(settings.terms.expire, TRACE);
        assert_eq!(settings.wait, None);
        assert_eq!(settings.on_abandoned, OnAbandoned::Rerun);
        assert_eq!(settings.on_store_error, OnStoreError::Error);
        assert!(settings.own_checkpoint);
    }

    #[test]
    fn a_lease_that_is_none_is_refused() {
        for lease in [Duration::ZERO, Duration::from_millis(999), 2 * TRACE] {
            let policy = Policy::new().lease(lease);
            let refused = policy.settings_of_lock(&Policy::new(), &TIMES);
            assert!(
                matches!(refused, Err(Error::InvalidPolicy { .. })),
                "{lease:?}"
            );
        }
    }
}
