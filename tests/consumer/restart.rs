//! A broker that dies and comes back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use idem_tests::body::{Bodies, Held};
use idem_tests::rabbit::RabbitServer;

use crate::rig::{Aside, Engine, Listening, id, on, soon};

#[tokio::test(flavor = "multi_thread")]
async fn what_a_broker_had_confirmed_is_done_once_after_it_was_killed() {
    const MESSAGES: usize = 20;
    let broker = RabbitServer::start().unwrap();
    let rabbit = on(&broker).prefetch(4).unwrap();
    let (engine, held) = (Engine::new(), Held::new());
    let effects = Arc::new(Mutex::new(BTreeMap::<String, u32>::new()));
    let (done, first) = (effects.clone(), held.clone());
    let handler = move |message: idem_examples::rabbit::Message| {
        let (engine, effects, held) = (engine.clone(), done.clone(), first.clone());
        async move {
            let id = message.id.clone();
            let body = async || {
                if id.as_str() == "m-0" {
                    held.stay().await;
                }
                *effects.lock().unwrap().entry(id.to_string()).or_default() += 1;
                Ok(())
            };
            engine.run(&message.id, body).await
        }
    };
    let before = Aside::of(&rabbit, &broker.url()).await;
    for number in 0..MESSAGES {
        let id = id(&format!("m-{number}"));
        before.link.publish(&id, b"").await.unwrap();
    }
    let listening = Listening::start(&rabbit, handler);
    held.entered().await;
    // One body runs, and the rest waits or has just been done: all of it loses its connection.
    broker.restart().unwrap();
    held.release();
    soon("all are done", async || {
        effects.lock().unwrap().len() == MESSAGES
    })
    .await;
    let after = Aside::of(&rabbit, &broker.url()).await;
    // The first one comes again, as a duplicate.
    soon("the queue is empty", async || {
        after.link.count(rabbit.queues().main()).await.unwrap() == 0
    })
    .await;
    listening.stop().await;
    let effects = effects.lock().unwrap().clone();
    assert!(effects.values().all(|times| *times == 1), "{effects:?}");
    after.nothing_is_left().await;
}

#[tokio::test]
async fn a_broker_that_dies_while_the_last_body_ends_does_not_spoil_the_stop() {
    let broker = RabbitServer::start().unwrap();
    let rabbit = on(&broker);
    let (engine, held, bodies) = (Engine::new(), Held::new(), Bodies::default());
    let (place, seen) = (held.clone(), bodies.clone());
    let handler = move |message: idem_examples::rabbit::Message| {
        let (engine, held, bodies) = (engine.clone(), place.clone(), seen.clone());
        async move {
            let body = async || {
                held.stay().await;
                bodies.add();
                Ok(())
            };
            engine.run(&message.id, body).await
        }
    };
    let aside = Aside::of(&rabbit, &broker.url()).await;
    aside.link.publish(&id("m-1"), b"").await.unwrap();
    let listening = Listening::start(&rabbit, handler);
    held.entered().await;
    let stopped = listening.tell_to_stop().await;
    broker.kill().unwrap();
    held.release();
    stopped.await.unwrap();
    assert_eq!(bodies.count(), 1);
}
