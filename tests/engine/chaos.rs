//! Random calls over a store with random faults: whatever happens, the promises are kept.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem_core::record::Status;
use idem_core::{Attempt, Error, Key, Policy, StoreErrorKind};
use idem_tests::faulty::{Fault, Verb};
use tokio::task::JoinSet;

use crate::rig::{LEASE, Rig, failure};

const KEYS: u64 = 30;
const CALLERS: u64 = 6;
const CALLS: u64 = 60;
const LIMIT: Duration = Duration::from_millis(20);

/// A sequence that a seed decides.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        // Marsaglia's xorshift, 64 bits.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    async fn pause(&mut self) {
        tokio::time::sleep(LIMIT / 8 * u32::try_from(self.below(4)).unwrap()).await;
    }

    /// Mostly a little, so that copies are still in time; now and then more than a lease.
    fn time(&mut self) -> Duration {
        match self.below(6) {
            0 => LEASE * 3 / 2,
            _ => LIMIT / 10 * u32::try_from(self.below(4)).unwrap(),
        }
    }

    fn fault(&mut self, verb: Verb) -> Fault {
        match self.below(20) {
            0 => Fault::lose_the_reply(),
            1 => Fault::swallow_the_reply(),
            2 => Fault::fail(StoreErrorKind::Unavailable),
            3 => Fault::hang(),
            4 => Fault::deliver_twice(),
            5 => Fault::stay_on_the_wire(),
            // The copy of a claim that was sent once, and answered, could hold a key for nobody.
            6 if verb != Verb::Claim => Fault::NONE.leaving_a_copy(),
            7..12 => Fault::NONE.yielding(),
            _ => Fault::NONE,
        }
    }
}

/// Faults under which a settle is confirmed all the same.
const HARMLESS: [Fault; 3] = [
    Fault::NONE,
    Fault::deliver_twice(),
    Fault::NONE.yielding().leaving_a_copy(),
];

/// What bodies did, by key.
#[derive(Clone, Default)]
struct Deeds(Arc<Mutex<HashMap<u64, Deed>>>);

#[derive(Clone, Default)]
struct Deed {
    /// Effects that happened and were not taken back.
    effects: Vec<u32>,
    number: u32,
    /// Bodies that began and did not return.
    left_behind: u32,
    /// What callers were given, each once.
    results: BTreeSet<u32>,
}

impl Deeds {
    fn of(&self, key: u64) -> Deed {
        self.with(key, |deed| deed.clone())
    }

    fn with<R>(&self, key: u64, change: impl FnOnce(&mut Deed) -> R) -> R {
        change(self.0.lock().unwrap().entry(key).or_default())
    }

    fn happens(&self, key: u64) -> u32 {
        self.with(key, |deed| {
            deed.number += 1;
            deed.effects.push(deed.number);
            deed.number
        })
    }

    fn is_given(&self, key: u64, number: u32, is_rerun: bool) {
        self.with(key, |deed| {
            deed.results.insert(number);
            assert!(is_rerun || deed.effects == [number], "key {key}: {number}");
        });
    }

    /// The body's own word: nothing happened.
    fn is_taken_back(&self, key: u64, number: u32) {
        self.with(key, |deed| deed.effects.retain(|effect| *effect != number));
    }
}

/// A body that ends in every way that there is.
async fn body(mut dice: Dice, deeds: Deeds, key: u64, marks: bool) -> Result<u32, Error> {
    deeds.with(key, |deed| deed.left_behind += 1);
    let result = effect(&mut dice, &deeds, key, marks).await;
    deeds.with(key, |deed| deed.left_behind -= 1);
    result
}

async fn effect(dice: &mut Dice, deeds: &Deeds, key: u64, marks: bool) -> Result<u32, Error> {
    dice.pause().await;
    if marks {
        Attempt::current().unwrap().checkpoint().await?;
    }
    let number = deeds.happens(key);
    dice.pause().await;
    match dice.below(20) {
        0 => std::future::pending().await,
        1 => panic!("one of many"),
        2..14 => {
            deeds.is_taken_back(key, number);
            Err(failure())
        }
        _ => Ok(number),
    }
}

fn address(key: u64) -> Key {
    Key::new("chaos", key).unwrap()
}

async fn calls(rig: Rig, mut dice: Dice, deeds: Deeds, policy: Policy) {
    let marks = policy == policy.own_checkpoint();
    for _ in 0..CALLS {
        let key = dice.below(KEYS);
        let policy = match dice.below(2) {
            0 => policy.lease(LEASE),
            _ => policy.lease(LEASE).wait_in_progress().wait(LIMIT * 3),
        };
        let patience = LIMIT * u32::try_from(dice.below(6)).unwrap() + LIMIT / 2;
        let call = {
            let (idem, dice, deeds) = (rig.idem.clone(), dice.clone(), deeds.clone());
            tokio::spawn(async move {
                let body = || body(dice, deeds, key, marks);
                let call = idem.run(address(key), policy, body);
                tokio::time::timeout(patience, call).await
            })
        };
        match call.await {
            Ok(Ok(Ok(number))) => deeds.is_given(key, number, is_rerun(policy)),
            Err(panicked) => assert!(panicked.is_panic()),
            Ok(Ok(Err(_)) | Err(_)) => {}
        }
        rig.clock.advance(dice.time());
        if dice.below(4) == 0 {
            rig.store.deliver_copies().await;
        }
    }
}

fn is_rerun(policy: Policy) -> bool {
    policy == policy.rerun_abandoned()
}

async fn storm(seed: u64, policy: Policy) {
    println!("seed {seed}, {policy:?}");
    let rig = Rig::with(|builder| builder.limit(LIMIT));
    let mut dice = Dice(seed);
    for verb in [
        Verb::Claim,
        Verb::Renew,
        Verb::Settle,
        Verb::Watch,
        Verb::Peek,
    ] {
        let faults: Vec<_> = if verb == Verb::Settle && is_rerun(policy) {
            HARMLESS.into_iter().cycle().take(1000).collect()
        } else {
            (0..1000).map(|_| dice.fault(verb)).collect()
        };
        rig.store.next(verb, faults);
    }
    let deeds = Deeds::default();
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let dice = Dice(dice.below(u64::MAX) | 1);
        callers.spawn(calls(rig.clone(), dice, deeds.clone(), policy));
    }
    callers.join_all().await;
    settle_down(&rig).await;
    for key in 0..KEYS {
        if is_rerun(policy) {
            judge_rerun(&rig, &deeds.of(key), key).await;
        } else {
            judge_hold(&rig, &deeds.of(key), key).await;
        }
    }
}

/// Lets what is left in the background and on the wire come to its end.
async fn settle_down(rig: &Rig) {
    rig.store.heal();
    rig.clock.advance(LIMIT * 2);
    rig.until_idle().await;
    rig.store.deliver_copies().await;
    rig.until_idle().await;
}

async fn judge_hold(rig: &Rig, deed: &Deed, key: u64) {
    let effects = &deed.effects;
    assert!(effects.len() <= 1, "key {key} had effects {effects:?}");
    let record = rig.idem.peek(&address(key)).await.unwrap();
    match record
        .as_ref()
        .map(|record| (record.status, record.running))
    {
        Some((Status::Success, _)) => {
            let body = async || Err::<u32, _>(failure());
            let replay = rig.idem.run(address(key), Policy::new(), body).await;
            assert_eq!(replay.unwrap(), effects[0], "key {key}");
        }
        Some((Status::Processing, Some(running))) => {
            assert!(running.is_abandoned, "key {key} is held");
            assert!(deed.left_behind > 0, "key {key} is held for nobody");
            assert!(running.checkpoint || effects.is_empty(), "key {key}");
        }
        _ => assert!(effects.is_empty(), "key {key} is forgotten"),
    }
}

async fn judge_rerun(rig: &Rig, deed: &Deed, key: u64) {
    let results = &deed.results;
    // A result that the store had not confirmed may have been followed by another.
    let unconfirmed = rig.counts().unconfirmed;
    let most = 1 + usize::try_from(unconfirmed).unwrap();
    assert!(results.len() <= most, "key {key} gave {results:?}");
    let body = async || Err::<u32, _>(failure());
    match rig.idem.run(address(key), Policy::new(), body).await {
        Ok(replay) => assert!(
            results.contains(&replay) || results.len() < most,
            "key {key} gave {results:?}, and {replay}"
        ),
        Err(_) => assert!(results.len() < most, "key {key} has forgotten {results:?}"),
    }
}

async fn storms(policies: &[Policy]) {
    let begin = std::time::SystemTime::now();
    let since = begin.duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut seeds = Dice(u64::try_from(since.as_nanos()).unwrap() | 1);
    let mut storms = JoinSet::new();
    for policy in policies.iter().cycle().take(8) {
        storms.spawn(storm(seeds.below(u64::MAX) | 1, *policy));
    }
    storms.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn at_hold_at_most_one_effect_stands_whatever_the_store_and_the_callers_do() {
    storms(&[Policy::new(), Policy::new().own_checkpoint()]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn at_rerun_all_callers_of_a_key_get_one_result() {
    let rerun = Policy::new().rerun_abandoned();
    storms(&[rerun, rerun.own_checkpoint()]).await;
}
