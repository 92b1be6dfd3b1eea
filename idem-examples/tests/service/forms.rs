//! A form with a one-time token.

use std::thread;

use anyhow::Result;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::server::Service;

fn form(token: &str, item: &str) -> Value {
    json!({ "token": token, "item": item, "quantity": 1 })
}

impl Client {
    /// A client of its own that is logged in.
    fn logged_in(&self, name: &str) -> Result<Self> {
        let client = self.apart();
        let answer = client.post("/session", &json!({ "name": name }))?;
        assert_eq!((answer.status, &answer.body["name"]), (200, &name.into()));
        Ok(client)
    }

    fn open_form(&self) -> Result<String> {
        let answer = self.post("/form", &json!({}))?;
        assert_eq!(answer.status, 200, "{answer:?}");
        Ok(answer.body["token"].as_str().unwrap_or_default().to_owned())
    }

    fn submit(&self, form: &Value) -> Answer {
        self.post("/form/submit", form).unwrap()
    }
}

fn assert_rejected(answer: &Answer) {
    assert_eq!(
        (answer.status, &answer.body["code"]),
        (403, &"token_rejected".into())
    );
}

// T01, T07
pub(crate) fn takes_a_token_once(service: &Service) -> Result<()> {
    let alice = service.client().logged_in("alice")?;
    let before = alice.get("/orders")?.body.as_array().map_or(0, Vec::len);
    let form = form(&alice.open_form()?, "tea");
    let answers: Vec<Answer> = thread::scope(|scope| {
        let clicks: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| alice.submit(&form)))
            .collect();
        clicks
            .into_iter()
            .map(|click| click.join().unwrap())
            .collect()
    });
    assert!(
        answers
            .iter()
            .all(|answer| answer.status == 201 && answer.body == answers[0].body)
    );
    let executed = answers.iter().filter(|answer| answer.outcome == "executed");
    assert_eq!(executed.count(), 1);
    let orders = alice.get("/orders")?.body.as_array().map_or(0, Vec::len);
    assert_eq!(orders, before + 1);
    Ok(())
}

#[test]
fn a_form_that_is_submitted_again_and_again_is_one_order() -> Result<()> {
    takes_a_token_once(&Service::start()?)
}

// T02, N10
#[test]
fn a_form_that_made_no_sense_can_be_corrected_and_sent_again() -> Result<()> {
    let service = Service::start()?;
    let alice = service.client().logged_in("alice")?;
    let token = alice.open_form()?;
    let wrong = alice.submit(&form(&token, "sofa"));
    assert_eq!(
        (wrong.status, &wrong.body["code"]),
        (400, &"invalid_order".into())
    );
    let corrected = alice.submit(&form(&token, "pot"));
    assert_eq!(
        (corrected.status, &corrected.body["item"]),
        (201, &"pot".into())
    );
    Ok(())
}

// N28, T07
#[test]
fn a_token_is_worth_nothing_to_anybody_else_before_and_after_its_use() -> Result<()> {
    let service = Service::start()?;
    let alice = service.client().logged_in("alice")?;
    let mallory = service.client().logged_in("mallory")?;
    let form = form(&alice.open_form()?, "tea");
    let before = mallory.submit(&form);
    assert_rejected(&before);
    assert_eq!(alice.submit(&form).status, 201);
    assert_eq!(mallory.submit(&form), before);
    let unknown = mallory.submit(&json!({ "token": "0".repeat(32), "item": "tea", "quantity": 1 }));
    assert_eq!(unknown, before);
    assert_eq!(
        mallory.submit(&json!({ "item": "tea", "quantity": 1 })),
        before
    );
    Ok(())
}

// N11
#[test]
fn nobody_becomes_somebody_by_saying_so() -> Result<()> {
    let service = Service::start()?;
    let alice = service.client().logged_in("alice")?;
    let token = alice.open_form()?;
    let nobody = service.client().apart();
    let mut form = form(&token, "tea");
    form["user"] = json!({ "name": "alice" });
    form["name"] = "alice".into();
    let answer = nobody.submit(&form);
    assert_eq!(
        (answer.status, &answer.body["code"]),
        (401, &"not_logged_in".into())
    );
    assert_rejected(&service.client().logged_in("mallory")?.submit(&form));

    let forged = "session=alice.0000";
    assert_eq!(nobody.status_with_cookie("/session", forged)?, 401);
    Ok(())
}

#[test]
fn a_token_is_given_by_post_only_and_not_kept_on_the_way() -> Result<()> {
    let service = Service::start()?;
    let alice = service.client().logged_in("alice")?;
    assert_eq!(alice.status("/form")?, 405);
    assert_eq!(alice.cache_control_of_post("/form")?, "no-store");
    Ok(())
}

// T03
#[test]
fn whoever_only_looks_uses_no_token_up() -> Result<()> {
    let service = Service::start()?;
    let alice = service.client().logged_in("alice")?;
    let token = alice.open_form()?;
    let form = form(&token, "tea");
    for (path, expected) in [
        ("/form/submit", [405; 3]),
        ("/form", [405; 3]),
        ("/", [200, 200, 405]),
        ("/page/form.js", [200, 200, 405]),
    ] {
        let path = format!("{path}?token={token}&item=tea&quantity=1");
        assert_eq!(alice.statuses_of_looking(&path, &form)?, expected, "{path}");
    }
    assert_eq!(alice.get("/orders")?.body, json!([]));
    let submitted = alice.submit(&form);
    assert_eq!((submitted.status, &*submitted.outcome), (201, "executed"));
    Ok(())
}
