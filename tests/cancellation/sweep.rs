//! The sweep itself.

use std::any::type_name_of_val;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
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
    let drop_after = |polls| {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let turn = G::turn().await;
            let scene = begin().await;
            for verb in VERBS {
                scene.store().always(verb, Fault::NONE.yielding());
            }
            let mut call = Box::pin(call(scene.clone()));
            let ended = dropped_after(polls, call.as_mut()).await;
            scene.ground().let_time_pass();
            drop(call);
            drop(turn);
            let is_over = ended.is_some();
            let beside = scene.comes_to_rest().await;
            let turn = G::turn().await;
            then(&scene, ended, beside).await;
            drop(turn);
            leaves_nothing(scene).await;
            is_over
        })
    };
    let (next, end) = (AtomicUsize::new(1), AtomicUsize::new(usize::MAX));
    let work = || loop {
        let polls = next.fetch_add(1, Ordering::SeqCst);
        if polls > end.load(Ordering::SeqCst) {
            break;
        }
        match catch_unwind(AssertUnwindSafe(|| drop_after(polls))) {
            Ok(false) => {}
            Ok(true) => {
                end.fetch_min(polls, Ordering::SeqCst);
            }
            Err(payload) => {
                println!("{}: dropped after {polls} polls", type_name_of_val(&call));
                end.store(0, Ordering::SeqCst);
                resume_unwind(payload);
            }
        }
    };
    let panicked = thread::scope(|scope| {
        let workers: Vec<_> = (0..G::AT_ONCE).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(ScopedJoinHandle::join);
        ended.collect::<Vec<_>>().into_iter().find_map(Result::err)
    });
    if let Some(payload) = panicked {
        resume_unwind(payload);
    }
    let polls = end.into_inner();
    assert!(polls >= least, "only {polls} polls");
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
