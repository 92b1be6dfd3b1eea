use super::*;

const TIMES: EngineTimes = EngineTimes {
    doubt: Duration::from_secs(1),
    limit: Duration::from_secs(2),
};

fn terms(policy: Policy) -> Result<Terms, Error> {
    policy
        .settings(&Policy::new(), &TIMES)
        .map(|settings| settings.terms)
}

#[test]
fn a_short_expire_shortens_the_default_lease() {
    let terms = terms(Policy::new().expire(Duration::from_secs(10))).unwrap();
    assert_eq!(terms.lease, Duration::from_secs(5));
}

// E03
#[test]
fn times_that_contradict_one_another_are_refused() {
    let second = Duration::from_secs(1);
    for policy in [
        Policy::new().expire(Duration::ZERO),
        Policy::new().expire(Duration::MAX),
        Policy::new().lease(Duration::ZERO),
        Policy::new().lease(Duration::from_millis(999)),
        Policy::new().lease(11 * second).expire(10 * second),
        Policy::new().lease(Duration::MAX),
    ] {
        let error = terms(policy).unwrap_err();
        assert!(
            matches!(error, Error::InvalidPolicy { .. }),
            "{policy:?}: {error}"
        );
    }
}

#[test]
fn what_a_function_does_not_say_the_engine_says() {
    let engine = Policy::new()
        .expire(Duration::from_mins(1))
        .rerun_abandoned();
    let settings = Policy::new().settings(&engine, &TIMES).unwrap();
    assert_eq!(settings.terms.expire, Duration::from_mins(1));
    assert_eq!(settings.on_abandoned, OnAbandoned::Rerun);
    let settings = Policy::new()
        .hold_abandoned()
        .settings(&engine, &TIMES)
        .unwrap();
    assert_eq!(settings.on_abandoned, OnAbandoned::Hold);
}
