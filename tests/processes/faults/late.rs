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

// E15, N01
#[test]
fn a_settle_that_arrives_while_the_next_owner_runs_changes_nothing() {
    for (end, told) in [("effect", "lease_lost"), ("fail", "declined")] {
        let slow = Slow::new();
        let patient = LIMIT * 2;
        let owner = Payer::start(&slow.proxy.url(), &slow.scene.ledger, LEASE, patient);
        let call = owner.begin("rerun", &format!("say:here,park:on,{end}"));
        owner.at("here");
        // Longer than the lease, for its renewals too.
        slow.proxy.set(Mode::Delay {
            requests: LIMIT - DELAY / 4,
            replies: Duration::ZERO,
        });
        owner.open("on");
        slow.other.sees("rerun", "abandoned");
        let heir = slow.other.begin("rerun", "say:mine,park:on");
        slow.other.at("mine");
        assert_eq!(owner.answer(call).said(), told);
        assert_eq!(slow.other.look("rerun"), "processing");
        slow.other.open("on");
        let winner = slow.other.answer(heir);
        assert_eq!(winner.said(), "executed");
        let again = slow.other.call("rerun", "effect");
        assert_eq!(again.receipt(), winner.receipt());
    }
}
