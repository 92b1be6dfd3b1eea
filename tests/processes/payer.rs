//! The test's end of `src/bin/payer`: a process that calls guarded functions.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use idem_tests::process::Worker;
use idem_tests::wait::{need, until};

use crate::ledger::Ledger;
use crate::scene::{LEASE, LIMIT, ORDER, SOON};

/// A process of the service: `src/bin/payer`.
pub(crate) struct Payer {
    worker: Worker,
    next: AtomicUsize,
    /// Lines that were heard while another was waited for.
    unheard: Mutex<Vec<String>>,
}

/// A call under way.
#[derive(Clone, Copy)]
pub(crate) struct Call(usize);

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Answer {
    outcome: String,
    detail: String,
    /// As the process measured it.
    pub(crate) took: Duration,
}

impl Answer {
    /// The outcome in a word; of a refusal, the code of its error.
    pub(crate) fn said(&self) -> &str {
        match self.outcome.as_str() {
            "refused" => &self.detail,
            outcome => outcome,
        }
    }

    /// Which run made the result: its fence.
    pub(crate) fn receipt(&self) -> &str {
        assert_ne!(self.outcome, "refused", "{self:?}");
        &self.detail
    }
}

impl Payer {
    /// Starts a process and waits until it is connected. The URL is that of a server, or
    /// `cluster:` or `sentinel:` and a list.
    pub(crate) fn start(url: &str, ledger: &Ledger, lease: Duration, limit: Duration) -> Self {
        let payer = Self::launch(url, ledger, lease, limit);
        assert_eq!(payer.worker.hear(SOON).unwrap(), "ready");
        payer
    }

    /// Starts a process and gives the complaint with which it ends.
    pub(crate) fn fail(url: &str, ledger: &Ledger) -> String {
        let payer = Self::launch(url, ledger, LEASE, LIMIT);
        payer.worker.hear(SOON).unwrap()
    }

    fn launch(url: &str, ledger: &Ledger, lease: Duration, limit: Duration) -> Self {
        let path = ledger.path().display().to_string();
        let [lease, limit] = [lease, limit].map(|time| time.as_millis().to_string());
        let arguments = [url, &path, &lease, &limit];
        Self {
            worker: Worker::start(env!("CARGO_BIN_EXE_payer"), arguments).unwrap(),
            next: AtomicUsize::new(0),
            unheard: Mutex::default(),
        }
    }

    /// Calls `function` for [`ORDER`], with a body that does what `plan` says.
    pub(crate) fn call(&self, function: &str, plan: &str) -> Answer {
        self.answer(self.begin(function, plan))
    }

    /// The same, with what a recovery does and finds out.
    pub(crate) fn call_or_ask(&self, function: &str, plan: &str, recovery: &str) -> Answer {
        self.answer(self.begin_or_ask(function, plan, recovery))
    }

    /// Calls and does not wait for the answer.
    pub(crate) fn begin(&self, function: &str, plan: &str) -> Call {
        self.begin_or_ask(function, plan, "-")
    }

    pub(crate) fn begin_or_ask(&self, function: &str, plan: &str, recovery: &str) -> Call {
        self.begin_for(ORDER, function, plan, recovery)
    }

    pub(crate) fn begin_for(
        &self,
        order: &str,
        function: &str,
        plan: &str,
        recovery: &str,
    ) -> Call {
        self.tell("call", &format!("{function} {order} {plan} {recovery}"))
    }

    pub(crate) fn answer(&self, call: Call) -> Answer {
        let line = self.line(call);
        let words: Vec<&str> = line.split(' ').collect();
        let [outcome, detail, micros] = words.as_slice() else {
            panic!("no answer: {line:?}");
        };
        Answer {
            outcome: (*outcome).to_owned(),
            detail: (*detail).to_owned(),
            took: Duration::from_micros(micros.parse().unwrap()),
        }
    }

    /// Calls again for as long as a live attempt is in the way.
    pub(crate) fn insist(&self, function: &str, plan: &str, recovery: &str) -> Answer {
        self.insist_for(ORDER, function, plan, recovery)
    }

    pub(crate) fn insist_for(
        &self,
        order: &str,
        function: &str,
        plan: &str,
        recovery: &str,
    ) -> Answer {
        let deadline = Instant::now() + SOON;
        loop {
            let answer = self.answer(self.begin_for(order, function, plan, recovery));
            if answer.said() != "in_progress" || Instant::now() > deadline {
                return answer;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The record's status, or `awaited` (live, and somebody waits), `abandoned`, `absent`.
    pub(crate) fn look(&self, function: &str) -> String {
        self.line(self.tell("look", &format!("{function} {ORDER}")))
    }

    /// Waits until the record has this status.
    pub(crate) fn sees(&self, function: &str, status: &str) {
        until(&format!("{status} at {function}"), SOON, || {
            let seen = self.look(function);
            need(seen == status, seen)
        })
        .unwrap();
    }

    /// What the engine counted under `name`.
    pub(crate) fn count(&self, name: &str) -> u64 {
        let line = self.line(self.tell("counts", ""));
        let name = format!("{name}: ");
        let found = line.split_once(&name).map(|(_, rest)| rest);
        let digits = found.and_then(|rest| rest.split([',', ' ']).next());
        digits
            .with_context(|| line.clone())
            .unwrap()
            .parse()
            .unwrap()
    }

    pub(crate) fn open(&self, gate: &str) {
        self.worker.say(&format!("open {gate}")).unwrap();
    }

    /// Drops the call's future; when this returns, it is gone.
    pub(crate) fn drop(&self, call: Call) {
        self.worker.say(&format!("drop {}", call.0)).unwrap();
        assert_eq!(self.line(call), "dropped");
    }

    /// Waits until a body says that it is at `word`.
    pub(crate) fn at(&self, word: &str) {
        let wanted = format!("at {word}");
        self.hear(|line| (line == wanted).then(String::new))
            .unwrap();
    }

    pub(crate) fn kill(&self) {
        self.worker.kill().unwrap();
    }

    pub(crate) fn freeze(&self) {
        self.worker.freeze().unwrap();
    }

    pub(crate) fn thaw(&self) {
        self.worker.thaw().unwrap();
    }

    /// Waits until it has ended, by itself.
    pub(crate) fn ended(&self) {
        assert!(self.worker.hear(SOON).is_err());
        self.worker.finish(SOON).unwrap();
    }

    /// Says a command whose answer bears its number.
    pub(crate) fn tell(&self, verb: &str, rest: &str) -> Call {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let line = format!("{verb} {id} {rest}");
        self.worker.say(line.trim_end()).unwrap();
        Call(id)
    }

    /// The answer to a command.
    pub(crate) fn line(&self, call: Call) -> String {
        let id = format!("{} ", call.0);
        self.hear(|line| line.strip_prefix(&id).map(str::to_owned))
            .unwrap()
    }

    /// The first line, of those not heard yet, that `wanted` takes.
    fn hear(&self, wanted: impl Fn(&str) -> Option<String>) -> Result<String> {
        let mut unheard = self.unheard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = unheard.iter().position(|line| wanted(line).is_some()) {
            return wanted(&unheard.remove(place)).context("it was there");
        }
        loop {
            let line = self.worker.hear(2 * SOON)?;
            match wanted(&line) {
                Some(rest) => return Ok(rest),
                None => unheard.push(line),
            }
        }
    }
}
