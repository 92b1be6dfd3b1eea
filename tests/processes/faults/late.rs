//! What was sent before and arrives after.

use std::thread;
use std::time::Duration;

use idem_tests::proxy::{Mode, Proxy};
use idem_tests::wait::{need, until};

use crate::payer::{Call, Payer};
use crate::scene::{LEASE, LIMIT, LONG_LEASE, Scene};

/// Shorter than the limit of a call: what arrives so late is not too late.
const DELAY: Duration = Duration::from_millis(800);

struct Slow {
    scene: Scene,
    proxy: Proxy,
    payer: Payer,
    other: Payer,
}

impl Slow {
    fn new() -> Self {
        let scene = Scene::new();
        let proxy = Proxy::start(scene.server.address()).unwrap();
        let payer = scene.patient_payer_by(&proxy.url());
        let other = scene.patient_payer();
        assert_eq!(payer.call("brief", "-").said(), "executed");
        Self {
            scene,
            proxy,
            payer,
            other,
        }
    }

    fn scripts(&self) -> u64 {
        self.proxy.commands_called("EVALSHA")
    }

    /// From now on what is sent takes its time.
    fn delay(&self) {
        self.proxy.set(Mode::Delay {
            requests: DELAY,
            replies: Duration::ZERO,
        });
    }

    /// Drops a call that has just sent a script on the slow wire; what the drop sends overtakes
    /// it. False if the drop came before the script was sent.
    fn overtake(&self, call: Call) -> bool {
        let before = self.scripts();
        thread::sleep(DELAY / 8);
        self.payer.drop(call);
        self.proxy.set(Mode::Pass);
        // The drop's own script, and the late one.
        until("two scripts", DELAY * 2, || {
            let scripts = self.scripts() - before;
            need(scripts == 2, scripts)
        })
        .is_ok()
    }

    /// Tries one order after the other until the script of one was on the wire when its call was
    /// dropped.
    fn first_overtaken(&self, send: impl Fn(&str) -> Call) -> String {
        let orders = (0..10).map(|number| format!("late-{number}"));
        let mut overtaken = orders.filter(|order| self.overtake(send(order)));
        overtaken.next().unwrap()
    }
}

// N38
#[test]
fn a_claim_that_arrives_after_it_was_given_up_holds_nothing() {
    let slow = Slow::new();
    let order = slow.first_overtaken(|order| {
        slow.delay();
        slow.payer.begin_for(order, "hold", "effect", "-")
    });
    let retry = slow.other.insist_for(&order, "hold", "effect", "-");
    assert_eq!(retry.said(), "executed");
    assert!(retry.took < LONG_LEASE / 4, "{retry:?}");
    assert_eq!(slow.scene.ledger.effects_for("hold", &order), 1);
}

// N30
#[test]
fn a_checkpoint_that_arrives_after_its_attempt_was_dropped_is_refused() {
    let slow = Slow::new();
    let order = slow.first_overtaken(|order| {
        let plan = format!("say:{order},park:{order},checkpoint,effect");
        let call = slow.payer.begin_for(order, "hold:marked", &plan, "-");
        slow.payer.at(order);
        slow.delay();
        slow.payer.open(order);
        call
    });
    let plan = "checkpoint,effect";
    let retry = slow.other.insist_for(&order, "hold:marked", plan, "-");
    assert_eq!(retry.said(), "executed");
    assert_eq!(slow.scene.ledger.effects_for("hold:marked", &order), 1);
}

/// A script of an owner with the shortest lease that takes longer than that, so that another
/// process has the key when it arrives; and the body of that one, which is under way.
fn outlive(slow: &Slow, function: &str, plan: &str) -> (Payer, Call, Call) {
    let owner = Payer::start(&slow.proxy.url(), &slow.scene.ledger, LEASE, LIMIT * 2);
    let late = owner.begin(function, &format!("say:here,park:on,{plan}"));
    owner.at("here");
    // For its renewals, too.
    slow.proxy.set(Mode::Delay {
        requests: LEASE * 9 / 5,
        replies: Duration::ZERO,
    });
    owner.open("on");
    slow.other.sees(function, "abandoned");
    let heir = slow.other.begin(function, "say:mine,park:on,checkpoint");
    slow.other.at("mine");
    (owner, late, heir)
}

/// The one who has the key finishes, and its result is everybody's.
fn assert_won(slow: &Slow, function: &str, heir: Call) {
    assert_eq!(slow.other.look(function), "processing");
    slow.other.open("on");
    let winner = slow.other.answer(heir);
    assert_eq!(winner.said(), "executed");
    let again = slow.other.call(function, "effect");
    assert_eq!(again.receipt(), winner.receipt());
}

// E15, N01
#[test]
fn a_settle_that_arrives_while_the_next_owner_runs_changes_nothing() {
    for (end, told) in [("effect", "lease_lost"), ("fail", "declined")] {
        let slow = Slow::new();
        let (owner, late, heir) = outlive(&slow, "rerun", end);
        assert_eq!(owner.answer(late).said(), told);
        assert_won(&slow, "rerun", heir);
    }
}

// E15
#[test]
fn a_checkpoint_that_arrives_while_the_next_owner_runs_is_refused() {
    for function in ["hold:marked", "rerun:marked"] {
        let slow = Slow::new();
        let (owner, late, heir) = outlive(&slow, function, "checkpoint,effect");
        assert_eq!(owner.answer(late).said(), "lease_lost", "{function}");
        // It may have left by its own clock, before the script arrived.
        thread::sleep(LEASE);
        assert_won(&slow, function, heir);
        assert_eq!(slow.scene.ledger.effects(function), 0);
    }
}
