//! Messages that can not be done.

use idem_core::consumer::{Action, Consumer, RETRIES_HEADER, Reason, Rules};
use idem_tests::body::Bodies;
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};

use crate::rig::{Aside, Engine, Failure, Listening, header, id, queue, reason, soon};

fn named(id: &str) -> BasicProperties {
    let mut headers = FieldTable::default();
    headers.insert("trace".into(), AMQPValue::LongString("t-1".into()));
    BasicProperties::default()
        .with_message_id(id.into())
        .with_headers(headers)
}

/// Does what the payload says.
fn start(rabbit: &idem_examples::rabbit::Rabbit, bodies: &Bodies) -> Listening {
    let (engine, bodies) = (Engine::new(), bodies.clone());
    Listening::start(rabbit, move |message| {
        let (engine, bodies) = (engine.clone(), bodies.clone());
        async move {
            let word = String::from_utf8(message.payload).map_err(|_| Failure::Unreadable)?;
            let body = async || {
                bodies.add();
                match word.as_str() {
                    "hopeless" => Err(Failure::Hopeless),
                    "passing" => Err(Failure::Passing),
                    "panic" => panic!("a panic that the test asked for"),
                    _ => Ok(()),
                }
            };
            engine.run(&message.id, body).await
        }
    })
}

// V01
#[tokio::test]
async fn a_poison_message_is_dead_with_its_id_its_headers_and_a_reason_and_others_go_on() {
    let (rabbit, bodies) = (queue(), Bodies::default());
    let aside = Aside::on_the_broker_of_all(&rabbit).await;
    let listening = start(&rabbit, &bodies);
    aside.publish(b"\xff", named("m-1")).await;
    aside.publish(b"hopeless", named("m-2")).await;
    aside.publish(b"passing", named("m-3")).await;
    aside.publish(b"fine", named("m-4")).await;
    let mut seen = Vec::new();
    for dead in aside.dead(3).await {
        let id = dead.properties.message_id().clone().unwrap();
        let trace = header(&dead, "trace");
        assert_eq!(trace, Some(AMQPValue::LongString("t-1".into())));
        let retries = header(&dead, RETRIES_HEADER);
        seen.push((id.to_string(), reason(&dead), retries, dead.data.clone()));
    }
    seen.sort_by(|one, other| one.0.cmp(&other.0));
    let dead = |id: &str, reason: &str, retries: Option<u32>, payload: &[u8]| {
        let retries = retries.map(AMQPValue::LongUInt);
        (id.to_owned(), reason.to_owned(), retries, payload.to_vec())
    };
    let expected = [
        dead("m-1", "unreadable", None, b"\xff"),
        dead("m-2", "rejected", None, b"hopeless"),
        dead("m-3", "retries_exhausted", Some(3), b"passing"),
    ];
    assert_eq!(seen, expected);
    soon("the fine one", async || {
        listening.consumer.counts().acked == 1
    })
    .await;
    listening.stop().await;
    // One, one and three retries of one, and the fine one.
    assert_eq!(bodies.count(), 6);
    aside.nothing_is_left().await;
}

#[tokio::test]
async fn a_handler_that_panics_has_an_unknown_outcome_and_stops_nothing_else() {
    let (rabbit, bodies) = (queue(), Bodies::default());
    let aside = Aside::on_the_broker_of_all(&rabbit).await;
    let listening = start(&rabbit, &bodies);
    aside.publish(b"panic", named("m-1")).await;
    aside.until_parked(1).await;
    aside.link.publish(&id("m-2"), b"fine").await.unwrap();
    soon("the fine one", async || {
        listening.consumer.counts().acked == 1
    })
    .await;
    let counts = listening.consumer.counts();
    listening.stop().await;
    assert_eq!((counts.parked, counts.dead, bodies.count()), (1, 0, 2));
}

/// A delivery whose task panics ends the connection of all, each time that it comes again.
#[tokio::test]
async fn an_error_whose_meaning_panics_is_one_that_may_pass_and_ends() {
    let consumer = Consumer::new(|(): &()| panic!("a panic that the test asked for"));
    let consumer = consumer.rules(Rules::new().retries(1));
    let failing = async |_| Err::<(), _>(());
    let first = consumer.handle(Some("m-1"), 0, failing).await;
    assert!(
        matches!(first, Action::Delay { retries: 1, .. }),
        "{first:?}"
    );
    let last = consumer.handle(Some("m-1"), 1, failing).await;
    let reason = Reason::RetriesExhausted;
    assert_eq!(last, Action::Dead { reason });
}

// N19
#[tokio::test]
async fn messages_without_an_id_are_refused_and_share_none() {
    let (rabbit, bodies) = (queue(), Bodies::default());
    let aside = Aside::on_the_broker_of_all(&rabbit).await;
    let listening = start(&rabbit, &bodies);
    aside.publish(b"one", BasicProperties::default()).await;
    aside.publish(b"two", BasicProperties::default()).await;
    aside.publish(b"three", named(" \u{200b}")).await;
    let dead = aside.dead(3).await;
    let reasons: Vec<_> = dead.iter().map(reason).collect();
    assert_eq!(reasons, ["missing_id"; 3]);
    listening.stop().await;
    assert_eq!(bodies.count(), 0);
    aside.nothing_is_left().await;
}

// N20
#[tokio::test]
async fn a_message_whose_copy_the_broker_does_not_take_is_not_acknowledged() {
    let (rabbit, bodies) = (queue(), Bodies::default());
    let aside = Aside::on_the_broker_of_all(&rabbit).await;
    let listening = start(&rabbit, &bodies);
    aside.link.publish(&id("m-1"), b"fine").await.unwrap();
    soon("it listens", async || {
        listening.consumer.counts().acked == 1
    })
    .await;
    aside.delete(&rabbit.queues().dead()).await;
    aside.publish(b"hopeless", named("m-2")).await;
    // The queues are made again with the next connection, on which it is delivered again.
    soon("it comes again", async || {
        listening.consumer.counts().dead == 2
    })
    .await;
    let dead = aside.dead(1).await;
    assert_eq!(dead[0].properties.message_id(), &Some("m-2".into()));
    listening.stop().await;
    aside.nothing_is_left().await;
}
