//! The sweep itself.

use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle};

use idem_tests::body::{dropped_after, within};
use idem_tests::faulty::{Fault, Verb};
use tokio::runtime::{Builder, Handle};

use crate::ground::Ground;
use crate::scene::{Said, Scene};

const VERBS: [Verb; 11] = [
    Verb::Claim,
    Verb::Renew,
    Verb::Settle,
    Verb::Issue,
    Verb::Refuse,
    Verb::Forget,
    Verb::Resolve,
    Verb::Peek,
    Verb::Scan,
    Verb::Now,
    Verb::Watch,
];

/// Makes a call in a scene of its own again and again, and drops it after its first poll, after
/// its second, and so on until it ends by itself; it has at least `least` polls. `then` looks at
/// what was left each time: what the call gave if it was not dropped, and what was given to calls
/// [beside](Scene::beside) it.
///
/// Whatever the path, everything that the scene had is gone afterwards.
pub(crate) fn sweep<G: Ground, T>(
    least: usize,
    begin: impl AsyncFn() -> Scene<G> + Sync,
    call: impl AsyncFn(Scene<G>) -> T + Sync,
    then: impl AsyncFn(&Scene<G>, Option<T>, Vec<Said>) + Sync,
) {
    let drop_after = &|polls| {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let scene = begin().await;
            for verb in VERBS {
                scene.store().always(verb, Fault::NONE.yielding());
            }
            let mut call = Box::pin(call(scene.clone()));
            let ended = dropped_after(polls, call.as_mut()).await;
            scene.ground().let_time_pass();
            drop(call);
            let is_over = ended.is_some();
            let beside = scene.comes_to_rest().await;
            then(&scene, ended, beside).await;
            leaves_nothing(scene).await;
            is_over
        })
    };
    for first in (1..).step_by(G::AT_ONCE) {
        let ended = thread::scope(|scope| {
            let drops = first..first + G::AT_ONCE;
            let drops = drops.map(|polls| (polls, scope.spawn(move || drop_after(polls))));
            let drops: Vec<_> = drops.collect();
            let join = |(polls, drop): (_, ScopedJoinHandle<_>)| (polls, drop.join());
            drops.into_iter().map(join).collect::<Vec<_>>()
        });
        // All of them are heard: those behind one that ended by itself, too.
        let mut enough = None;
        for (polls, ended) in ended {
            match ended {
                Err(payload) => {
                    println!("dropped after {polls} polls");
                    resume_unwind(payload);
                }
                Ok(true) => enough = enough.or(Some(polls)),
                Ok(false) => {}
            }
        }
        if let Some(polls) = enough {
            assert!(polls >= least, "only {polls} polls");
            return;
        }
    }
}

/// No task of the caller's runtime, and nothing in the background that still has the engine.
async fn leaves_nothing<G: Ground>(scene: Scene<G>) {
    scene.ground().until_idle().await;
    let (store, patience) = (scene.store().clone(), scene.patience);
    drop(scene);
    let is_alone = async || store.is_alone();
    within(patience, "the engine is gone", is_alone).await;
    drop(store);
    let tasks = Handle::current().metrics();
    let has_none = async || tasks.num_alive_tasks() == 0;
    within(patience, "no task is left", has_none).await;
}
