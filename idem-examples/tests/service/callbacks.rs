//! The payment provider's notifications, real and forged.

use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use idem_tests::postgres::PostgresServer;
use idem_tests::proxy::{Mode, Proxy};
use idem_tests::wait::{need, until};
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::databases::Begun;
use crate::server::{Place, Service};

const PATIENCE: Duration = Duration::from_secs(30);

/// Time to see that the server has begun what it has not answered yet.
pub(crate) const LATE: Mode = Mode::Delay {
    requests: Duration::ZERO,
    replies: Duration::from_secs(3),
};

/// A notification, as the provider signed it.
struct Note {
    body: String,
    signature: String,
}

impl Client {
    fn notification(&self, order_no: &str, kind: &str) -> Result<Note> {
        let occasion = json!({ "order_no": order_no, "kind": kind });
        let signed = self.post("/provider/notifications", &occasion)?.body;
        let text = |field: &str| signed[field].as_str().map(str::to_owned);
        Ok(Note {
            body: text("body").context("no body")?,
            signature: text("signature").context("no signature")?,
        })
    }

    fn notify(&self, note: &Note) -> Result<Answer> {
        self.post_signed("/callbacks/payment", &note.body, &note.signature)
    }

    fn send_note(&self, note: &Note) -> Result<TcpStream> {
        self.send_raw_signed("/callbacks/payment", &note.body, &note.signature)
    }

    fn payments(&self, order_no: &str) -> Result<Vec<Value>> {
        let payments = self.get(&format!("/orders/{order_no}/payments"))?.body;
        Ok(payments.as_array().context("no list")?.clone())
    }

    fn status_of(&self, order_no: &str) -> Result<Value> {
        Ok(self.get(&format!("/orders/{order_no}"))?.body["status"].clone())
    }
}

fn assert_success(answer: &Answer) {
    assert_eq!(
        (answer.status, &answer.body),
        (200, &"success".into()),
        "{answer:?}"
    );
}

pub(crate) fn notes_a_payment(service: &Service, request: &str) -> Result<()> {
    let client = service.client();
    let order_no = client.create_order(request)?;
    assert_success(&client.notify(&client.notification(&order_no, "paid")?)?);
    assert_eq!(client.status_of(&order_no)?, "paid");
    Ok(())
}

// N15, N18, N35
pub(crate) fn notes_each_event_once(service: &Service) -> Result<()> {
    let client = service.client();
    let order_no = client.create_order("to be notified")?;
    let paid = client.notification(&order_no, "paid")?;
    let answers: Vec<Answer> = thread::scope(|scope| {
        let sent: Vec<_> = (0..5)
            .map(|_| scope.spawn(|| client.notify(&paid).unwrap()))
            .collect();
        sent.into_iter()
            .map(|answer| answer.join().unwrap())
            .collect()
    });
    // One that was told to come back does so, as providers do.
    for answer in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!(answer.body["code"], "in_progress", "{answer:?}");
    }
    assert_success(&client.notify(&paid)?);
    assert_eq!(client.payments(&order_no)?.len(), 1);
    assert_eq!(client.status_of(&order_no)?, "paid");

    let refunded = client.notification(&order_no, "refunded")?;
    for _ in 0..2 {
        assert_success(&client.notify(&refunded)?);
    }
    assert_success(&client.notify(&paid)?);
    let kinds: Vec<_> = client
        .payments(&order_no)?
        .iter()
        .map(|payment| payment["kind"].clone())
        .collect();
    assert_eq!(kinds, ["paid", "refunded"]);
    assert_eq!(client.status_of(&order_no)?, "refunded");
    Ok(())
}

/// What is told again when its record has expired finds its line.
pub(crate) fn writes_no_line_twice(
    service: &Service,
    expire: impl Fn() -> Result<()>,
) -> Result<()> {
    let client = service.client();
    let order_no = client.create_order("to be told again")?;
    for kind in ["paid", "refunded"] {
        let note = client.notification(&order_no, kind)?;
        for _ in 0..2 {
            let answer = client.notify(&note)?;
            assert_success(&answer);
            assert_eq!(answer.outcome, "executed");
            expire()?;
        }
    }
    assert_eq!(client.payments(&order_no)?.len(), 2);
    assert_eq!(client.status_of(&order_no)?, "refunded");
    Ok(())
}

#[test]
fn one_notification_sent_five_times_is_one_payment_and_a_refund_is_not_swallowed() -> Result<()> {
    notes_each_event_once(&Service::start()?)
}

// N18
#[test]
fn a_forged_notification_writes_nothing_that_could_hinder_the_real_one() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    let order_no = client.create_order("r-1")?;
    let real = client.notification(&order_no, "paid")?;
    let cheap = real.body.replace("2500", "1");
    assert_ne!(cheap, real.body);
    for (body, signature) in [
        (&cheap, &*real.signature),
        (&real.body, "00"),
        (&real.body, ""),
    ] {
        let answer = client.post_signed("/callbacks/payment", body, signature)?;
        assert_eq!(
            (answer.status, &answer.body["code"]),
            (401, &"forged".into())
        );
    }
    assert_eq!(
        client.get("/records")?.body.as_array().map(Vec::len),
        Some(1)
    );
    assert_success(&client.notify(&real)?);
    assert_eq!(client.status_of(&order_no)?, "paid");
    Ok(())
}

#[test]
fn a_refund_that_overtakes_its_payment_is_taken_when_it_comes_again() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    let order_no = client.create_order("r-1")?;
    let paid = client.notification(&order_no, "paid")?;
    let refunded = client.notification(&order_no, "refunded")?;
    let early = client.notify(&refunded)?;
    assert_eq!(
        (early.status, &early.body["code"]),
        (409, &"not_now".into())
    );
    assert_eq!(client.payments(&order_no)?, Vec::<Value>::new());
    assert_success(&client.notify(&paid)?);
    assert_success(&client.notify(&refunded)?);
    assert_eq!(client.status_of(&order_no)?, "refunded");
    Ok(())
}

#[test]
fn what_nobody_paid_is_not_charged_to_be_given_back() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    let order_no = client.create_order("r-1")?;
    let occasion = json!({ "order_no": order_no, "kind": "refunded" });
    let refused = client.post("/provider/notifications", &occasion)?;
    assert_eq!(
        (refused.status, &refused.body["code"]),
        (409, &"no_charge".into())
    );
    assert_eq!(client.pay(&order_no)?.status, 200);
    assert_eq!(client.charges(&order_no)?, 1);
    Ok(())
}

#[test]
fn a_payment_that_is_told_after_its_refund_is_noted_and_changes_nothing() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    let order_no = client.create_order("r-1")?;
    assert_eq!(client.pay(&order_no)?.status, 200);
    for kind in ["refunded", "paid"] {
        assert_success(&client.notify(&client.notification(&order_no, kind)?)?);
        assert_eq!(client.status_of(&order_no)?, "refunded");
    }
    assert_eq!(client.payments(&order_no)?.len(), 2);
    Ok(())
}

#[test]
fn the_notification_of_a_payment_by_the_page_finds_it_paid() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    let order_no = client.create_order("r-1")?;
    assert_eq!(client.pay(&order_no)?.status, 200);
    assert_success(&client.notify(&client.notification(&order_no, "paid")?)?);
    assert_eq!(client.payments(&order_no)?.len(), 1);
    assert_eq!(client.charges(&order_no)?, 1);
    Ok(())
}

#[test]
fn an_order_whose_money_was_given_back_gives_no_receipt_and_is_not_charged_again() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    let order_no = client.create_order("r-1")?;
    for kind in ["paid", "refunded"] {
        assert_success(&client.notify(&client.notification(&order_no, kind)?)?);
    }
    let late = client.pay(&order_no)?;
    assert_eq!((late.status, &late.body["code"]), (409, &"refunded".into()));
    assert_eq!(client.charges(&order_no)?, 1);
    Ok(())
}

#[test]
fn the_provider_is_answered_by_the_bare_word() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    let order_no = client.create_order("r-1")?;
    let Note { body, signature } = client.notification(&order_no, "paid")?;
    let (media, text) = client.text_of_signed("/callbacks/payment", &body, &signature)?;
    assert_eq!((&*media, &*text), ("text/plain; charset=utf-8", "success"));
    Ok(())
}

// N15
#[test]
fn a_second_charge_is_no_success_although_the_order_is_paid() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    let order_no = client.create_order("r-1")?;
    // Paid at the provider's page, which has told nobody yet; then by the button, too.
    let first = client.notification(&order_no, "paid")?;
    assert_eq!(client.pay(&order_no)?.status, 200);
    let answer = client.notify(&first)?;
    assert_eq!(
        (answer.status, &answer.body["code"]),
        (409, &"another_charge".into())
    );
    Ok(())
}

#[test]
fn a_charge_too_many_is_refused_until_it_was_given_back_and_then_the_books_are_even() -> Result<()>
{
    even_books(&Service::start()?)
}

pub(crate) fn even_books(service: &Service) -> Result<()> {
    let client = service.client();
    let order_no = client.create_order("too-many")?;
    // The provider's notes are about its first charge; the order is paid by the other one.
    let paid = client.notification(&order_no, "paid")?;
    let refunded = client.notification(&order_no, "refunded")?;
    assert_eq!(client.pay(&order_no)?.status, 200);
    assert_eq!(client.charges(&order_no)?, 2);
    for _ in 0..2 {
        let answer = client.notify(&paid)?;
        assert_eq!(
            (answer.status, &answer.body["code"]),
            (409, &"another_charge".into())
        );
    }
    assert_eq!(client.payments(&order_no)?, Vec::<Value>::new());
    for note in [&refunded, &refunded, &paid, &paid] {
        assert_success(&client.notify(note)?);
    }
    assert_eq!(client.status_of(&order_no)?, "paid");
    let books = client.payments(&order_no)?;
    let kinds: Vec<_> = books.iter().map(|line| &line["kind"]).collect();
    assert_eq!(kinds, ["refunded", "paid"]);
    assert_eq!(books[0]["charge_no"], books[1]["charge_no"]);
    Ok(())
}

#[test]
fn a_provider_that_hangs_up_while_a_transaction_begins_leaves_none_open() -> Result<()> {
    let server = PostgresServer::start()?;
    let begun = Begun::at(&server)?;
    let proxy = Proxy::start(server.address())?;
    let service = Place::on(PostgresServer::url_at(proxy.address()))?.start("service")?;
    let client = service.client();
    let order_no = client.create_order("r-1")?;
    let paid = client.notification(&order_no, "paid")?;

    proxy.set(LATE);
    let mut provider = client.send_note(&paid)?;
    until("a BEGIN that is not answered", PATIENCE, || {
        need(begun.count()? == 1, "none has begun")
    })?;
    proxy.set(Mode::Hold);
    provider.set_read_timeout(Some(PATIENCE))?;
    provider.shutdown(Shutdown::Write)?;
    // Where the handler is dropped, its connection is closed.
    provider.read_to_end(&mut Vec::new())?;
    proxy.set(Mode::Pass);
    until("the payment", PATIENCE, || {
        let payments = client.payments(&order_no)?;
        need(payments.len() == 1, payments)
    })?;
    assert_eq!(begun.count()?, 0);
    Ok(())
}
