//! Deliveries that break off: the broker does not take a copy, or closes the channel in the middle, or
//! their task dies.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use idem_examples::rabbit::Message;
use idem_tests::body::{Bodies, Held};
use idem_tests::rabbit::RabbitServer;
use lapin::BasicProperties;

use crate::rig::{Aside, Engine, Failure, Listening, id, on, queue, soon};

fn acked(listening: &Listening) -> u64 {
    listening.consumer.counts().acked
}

/// The queue of the dead is full, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_the_broker_refuses_is_offered_again_until_it_is_taken() {
    let broker = RabbitServer::start().unwrap();
    let rabbit = on(&broker);
    let (engine, bodies) = (Engine::new(), Bodies::default());
    let counted = bodies.clone();
    let aside = Aside::of(&rabbit, &broker.url()).await;
    let full = r#"{"max-length": 1, "overflow": "reject-publish"}"#;
    let dead = format!("^{}$", rabbit.queues().dead().replace('.', "[.]"));
    let limit = ["set_policy", "--apply-to", "queues", "full", &dead, full];
    broker.control(&limit).unwrap();
    let listening = Listening::start(&rabbit, move |message: Message| {
        let (engine, bodies) = (engine.clone(), counted.clone());
        async move {
            let body = async || {
                bodies.add();
                Err::<(), _>(Failure::Hopeless)
            };
            engine.run(&message.id, body).await
        }
    });
    // A queue that is just full takes a little more before it refuses. What it has refused is offered
    // again, and counted once more.
    let offered = || listening.consumer.counts().dead;
    let mut published = 0;
    while offered() <= published {
        published += 1;
        let id = id(&format!("m-{published}"));
        aside.link.publish(&id, b"").await.unwrap();
        soon("it is offered", async || offered() >= published).await;
    }
    broker.control(&["clear_policy", "full"]).unwrap();
    let published = usize::try_from(published).unwrap();
    let dead = aside.dead(published).await;
    let ids = dead.iter().map(|dead| dead.properties.message_id().clone());
    assert_eq!(ids.collect::<BTreeSet<_>>().len(), published);
    listening.stop().await;
    aside.nothing_is_left().await;
}

/// A body that takes longer than the broker waits for an acknowledgement.
#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_the_broker_closes_under_a_body_costs_no_second_effect() {
    // It looks only now and then; by default once a minute, for what is half an hour old.
    let impatient = "[{rabbit, [{consumer_timeout, 1000}, {channel_tick_interval, 200}]}].";
    let broker = RabbitServer::start_with(impatient).unwrap();
    let rabbit = on(&broker);
    let (engine, bodies, held) = (Engine::new(), Bodies::default(), Held::new());
    let (counted, place) = (bodies.clone(), held.clone());
    let listening = Listening::start(&rabbit, move |message: Message| {
        let (engine, bodies, held) = (engine.clone(), counted.clone(), place.clone());
        async move {
            let body = async || {
                bodies.add();
                if message.id.as_str() == "m-1" {
                    held.stay().await;
                }
                Ok(())
            };
            engine.run(&message.id, body).await
        }
    });
    let aside = Aside::of(&rabbit, &broker.url()).await;
    aside.link.publish(&id("m-1"), b"").await.unwrap();
    held.entered().await;
    // It is delivered again on another channel, where it is told that it runs.
    soon("the second delivery", async || {
        listening.consumer.counts().delayed >= 1
    })
    .await;
    aside.link.publish(&id("m-2"), b"").await.unwrap();
    soon("others go on", async || acked(&listening) >= 1).await;
    held.release();
    soon("the first is done", async || acked(&listening) >= 3).await;
    let counts = listening.consumer.counts();
    listening.stop().await;
    assert_eq!((counts.parked, counts.dead, bodies.count()), (0, 0, 2));
    aside.nothing_is_left().await;
}

/// Panics when it is dropped, which is after the call, where nobody expects it.
struct Bomb(Arc<AtomicBool>);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(
            !self.0.swap(false, Ordering::SeqCst),
            "a panic that the test asked for"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_whose_task_panics_comes_again_while_other_bodies_run() {
    let rabbit = queue();
    let (engine, bodies, held) = (Engine::new(), Bodies::default(), Held::new());
    let is_armed = Arc::new(AtomicBool::new(true));
    let (counted, place, armed) = (bodies.clone(), held.clone(), is_armed.clone());
    let listening = Listening::start(&rabbit, move |message: Message| {
        let (engine, bodies, held) = (engine.clone(), counted.clone(), place.clone());
        let armed = armed.clone();
        async move {
            let is_first = message.id.as_str() == "m-1";
            let body = async || {
                bodies.add();
                if is_first {
                    held.stay().await;
                }
                Ok(())
            };
            engine.run(&message.id, body).await?;
            let quiet = Arc::new(AtomicBool::new(false));
            Ok(Bomb(if is_first { quiet } else { armed }))
        }
    });
    let aside = Aside::on_the_broker_of_all(&rabbit).await;
    aside.link.publish(&id("m-1"), b"").await.unwrap();
    held.entered().await;
    aside
        .publish(
            b"",
            BasicProperties::default().with_message_id("m-2".into()),
        )
        .await;
    soon("it panics", async || !is_armed.load(Ordering::SeqCst)).await;
    // Counted when the call had ended, and again for its second delivery.
    soon("it comes again", async || acked(&listening) >= 2).await;
    held.release();
    // Its own delivery has lost its connection; it comes again, too.
    soon("the first is done", async || acked(&listening) >= 4).await;
    let counts = listening.consumer.counts();
    listening.stop().await;
    assert_eq!((counts.parked, counts.dead, bodies.count()), (0, 0, 2));
    aside.nothing_is_left().await;
}

/// The one that panics late was begun on a connection that another one's panic has ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_on_a_connection_that_is_lost_leaves_the_next_one_alone() {
    let rabbit = queue();
    let (engine, calls) = (Engine::new(), Bodies::default());
    let [slow, last] = [(); 2].map(|()| Held::new());
    let [early, late] = [(); 2].map(|()| Arc::new(AtomicBool::new(true)));
    let seen = (slow.clone(), last.clone(), early.clone(), late.clone());
    let counted = calls.clone();
    let listening = Listening::start(&rabbit, move |message: Message| {
        let (engine, calls) = (engine.clone(), counted.clone());
        let (slow, last, early, late) = seen.clone();
        async move {
            let (place, armed) = match message.id.as_str() {
                "slow" => (Some(slow), late),
                "panics" => (None, early),
                _ => (Some(last), Arc::default()),
            };
            if message.id.as_str() == "last" {
                calls.add();
            }
            let body = async || {
                if let Some(place) = place {
                    place.stay().await;
                }
                Ok(())
            };
            engine.run(&message.id, body).await?;
            Ok(Bomb(armed))
        }
    });
    let aside = Aside::on_the_broker_of_all(&rabbit).await;
    aside.link.publish(&id("slow"), b"").await.unwrap();
    slow.entered().await;
    aside.link.publish(&id("panics"), b"").await.unwrap();
    soon("it comes again", async || acked(&listening) >= 2).await;
    aside.link.publish(&id("last"), b"").await.unwrap();
    last.entered().await;
    slow.release();
    soon("it panics", async || !late.load(Ordering::SeqCst)).await;
    soon("it comes again, too", async || acked(&listening) >= 4).await;
    last.release();
    soon("the last is done", async || acked(&listening) >= 5).await;
    listening.stop().await;
    assert_eq!(calls.count(), 1);
    assert!(!early.load(Ordering::SeqCst));
    aside.nothing_is_left().await;
}
