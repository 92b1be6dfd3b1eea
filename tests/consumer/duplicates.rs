//! One event, several messages.

use idem_core::consumer::Counts;
use idem_tests::body::{Bodies, Held};
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};

use crate::rig::{Aside, Engine, Failure, Listening, id, queue, soon};

fn acked(listening: &Listening) -> u64 {
    listening.consumer.counts().acked
}

// V01
#[tokio::test]
async fn a_message_that_is_published_twice_runs_once_and_both_are_acknowledged() {
    let (rabbit, engine, bodies) = (queue(), Engine::new(), Bodies::default());
    let aside = Aside::on_the_broker_of_all(&rabbit).await;
    aside.link.publish(&id("m-1"), b"").await.unwrap();
    aside.link.publish(&id("m-1"), b"").await.unwrap();
    let counted = bodies.clone();
    let listening = Listening::start(&rabbit, move |message| {
        let (engine, bodies) = (engine.clone(), counted.clone());
        async move {
            let body = async || {
                bodies.add();
                Ok(())
            };
            engine.run(&message.id, body).await
        }
    });
    soon("both are done", async || acked(&listening) == 2).await;
    listening.stop().await;
    assert_eq!(bodies.count(), 1);
    aside.nothing_is_left().await;
}

// K16
#[tokio::test]
async fn headers_that_differ_in_each_delivery_do_not_make_two_events_of_one() {
    let (rabbit, engine, bodies) = (queue(), Engine::new(), Bodies::default());
    let aside = Aside::on_the_broker_of_all(&rabbit).await;
    for request in ["r-1", "r-2"] {
        let mut headers = FieldTable::default();
        let request = AMQPValue::LongString(request.into());
        headers.insert("x-request-id".into(), request);
        let properties = BasicProperties::default()
            .with_message_id("m-1".into())
            .with_headers(headers);
        aside.publish(b"", properties).await;
    }
    let counted = bodies.clone();
    let listening = Listening::start(&rabbit, move |message| {
        let (engine, bodies) = (engine.clone(), counted.clone());
        async move {
            let body = async || {
                bodies.add();
                Ok(())
            };
            engine.run(&message.id, body).await
        }
    });
    soon("both are done", async || acked(&listening) == 2).await;
    listening.stop().await;
    assert_eq!(bodies.count(), 1);
}

// V02, N20
#[tokio::test]
async fn a_duplicate_of_a_message_that_runs_is_delayed_and_runs_if_the_first_fails() {
    let (rabbit, engine) = (queue(), Engine::new());
    let (bodies, held) = (Bodies::default(), Held::new());
    let aside = Aside::on_the_broker_of_all(&rabbit).await;
    let (counted, first) = (bodies.clone(), held.clone());
    let listening = Listening::start(&rabbit, move |message| {
        let (engine, bodies, held) = (engine.clone(), counted.clone(), first.clone());
        async move {
            let body = async || match bodies.add() {
                1 => {
                    held.stay().await;
                    Err(Failure::Hopeless)
                }
                _ => Ok(()),
            };
            engine.run(&message.id, body).await
        }
    });
    aside.link.publish(&id("m-1"), b"").await.unwrap();
    held.entered().await;
    aside.link.publish(&id("m-1"), b"").await.unwrap();
    // Three rounds, none of which counts: only three retries are allowed.
    soon("the duplicate comes back", async || {
        listening.consumer.counts().delayed >= 5
    })
    .await;
    assert_eq!(bodies.count(), 1);
    held.release();
    soon("the duplicate is done", async || acked(&listening) == 1).await;
    let Counts { parked, dead, .. } = listening.consumer.counts();
    listening.stop().await;
    assert_eq!((bodies.count(), parked, dead), (2, 0, 1));
    assert_eq!(aside.dead(1).await.len(), 1);
    aside.nothing_is_left().await;
}
