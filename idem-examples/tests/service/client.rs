//! A client of the service, as small as it can be.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result};
use idem_tests::wait::{need, until};
use serde_json::{Value, json};
use ureq::Agent;

type Response = ureq::http::Response<ureq::Body>;

/// Longer than any lease of the service.
const PATIENCE: Duration = Duration::from_secs(30);

/// A client of one address. Clones share its cookies.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    agent: Agent,
    base: String,
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) outcome: String,
    pub(crate) retry_after: Option<u64>,
    pub(crate) body: Value,
}

impl Client {
    pub(crate) fn new(base: String) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // A server that refuses before it has read a body closes the connection.
            .max_idle_connections(0)
            .timeout_global(Some(PATIENCE));
        Self {
            agent: config.build().into(),
            base,
        }
    }

    /// A client of the same service with no cookie of this one's.
    pub(crate) fn apart(&self) -> Self {
        Self::new(self.base.clone())
    }

    pub(crate) fn status(&self, path: &str) -> Result<u16> {
        Ok(self.agent.get(self.url(path)).call()?.status().as_u16())
    }

    /// The statuses of GET, HEAD and OPTIONS with a body, as by somebody who fetches ahead.
    pub(crate) fn statuses_of_looking(&self, path: &str, body: &Value) -> Result<[u16; 3]> {
        let url = self.url(path);
        let agent = &self.agent;
        let mut statuses = [0; 3];
        let looks = [agent.get(&url), agent.head(&url), agent.options(&url)];
        for (status, look) in statuses.iter_mut().zip(looks) {
            let look = look.header("sec-purpose", "prefetch").force_send_body();
            *status = look.send_json(body)?.status().as_u16();
        }
        Ok(statuses)
    }

    pub(crate) fn status_with_cookie(&self, path: &str, cookie: &str) -> Result<u16> {
        let request = self.agent.get(self.url(path)).header("cookie", cookie);
        Ok(request.call()?.status().as_u16())
    }

    pub(crate) fn cache_control_of_post(&self, path: &str) -> Result<String> {
        let response = self.agent.post(self.url(path)).send_empty()?;
        let header = response.headers().get("cache-control");
        Ok(header.context("none")?.to_str()?.to_owned())
    }

    pub(crate) fn get(&self, path: &str) -> Result<Answer> {
        read(self.agent.get(self.url(path)).call()?)
    }

    pub(crate) fn text(&self, path: &str) -> Result<String> {
        let mut response = self.agent.get(self.url(path)).call()?;
        Ok(response.body_mut().read_to_string()?)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        read(self.agent.post(self.url(path)).send_json(body)?)
    }

    pub(crate) fn post_signed(&self, path: &str, body: &str, signature: &str) -> Result<Answer> {
        read(self.send_signed(path, body, signature)?)
    }

    /// The media type of the answer, and its body as it came.
    pub(crate) fn text_of_signed(
        &self,
        path: &str,
        body: &str,
        signature: &str,
    ) -> Result<(String, String)> {
        let mut response = self.send_signed(path, body, signature)?;
        let media = header(&response, "content-type").context("no media type")?;
        Ok((media, response.body_mut().read_to_string()?))
    }

    /// Sends the same and reads no answer.
    pub(crate) fn send_raw_signed(&self, path: &str, body: &str, seal: &str) -> Result<TcpStream> {
        self.send_raw(path, &format!("x-provider-signature: {seal}"), body)
    }

    /// The status that a body gets which does not say what it is.
    pub(crate) fn status_of_unnamed(&self, path: &str, body: &str) -> Result<u16> {
        let mut stream = self.send_raw(path, "connection: close", body)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.split(' ').nth(1).context("no status")?.parse()?)
    }

    fn send_raw(&self, path: &str, header: &str, body: &str) -> Result<TcpStream> {
        let host = self.base.trim_start_matches("http://");
        let mut stream = TcpStream::connect(host)?;
        let length = body.len();
        // In one piece: a server that refuses before it has read a body closes the connection.
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\n{header}\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes())?;
        Ok(stream)
    }

    fn send_signed(&self, path: &str, body: &str, signature: &str) -> Result<Response> {
        let request = self.agent.post(self.url(path));
        Ok(request
            .header("x-provider-signature", signature)
            .send(body)?)
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Result<Answer> {
        read(self.agent.put(self.url(path)).send_json(body)?)
    }

    /// Sends a payment and reads no answer: dropping the stream hangs up.
    pub(crate) fn send_payment(&self, order_no: &str) -> Result<TcpStream> {
        let host = self.base.trim_start_matches("http://");
        let mut stream = TcpStream::connect(host)?;
        let path = pay_path(order_no);
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\n\r\n"
        )?;
        Ok(stream)
    }

    /// Makes the provider slow.
    pub(crate) fn set_delay(&self, delay: Duration) -> Result<()> {
        let body = json!({ "delay_ms": delay.as_millis() });
        self.put("/provider", &body).map(drop)
    }

    /// A new order, by its number.
    pub(crate) fn create_order(&self, request_id: &str) -> Result<String> {
        let order = json!({ "request_id": request_id, "item": "cup", "quantity": 2 });
        let answer = self.post("/orders", &order)?;
        need(answer.status == 201, &answer)?;
        text(&answer.body, "order_no")
    }

    pub(crate) fn pay(&self, order_no: &str) -> Result<Answer> {
        self.pay_by(order_no, "good")
    }

    pub(crate) fn pay_by(&self, order_no: &str, card: &str) -> Result<Answer> {
        self.post(&pay_path(order_no), &json!({ "card": card }))
    }

    /// Pays again and again while somebody else is said to be paying.
    pub(crate) fn pay_until_answered(&self, order_no: &str) -> Result<Answer> {
        until("an answer to a payment", PATIENCE, || {
            let answer = self.pay(order_no)?;
            need(answer.body["code"] != "in_progress", &answer)?;
            Ok(answer)
        })
    }

    /// How often the order was charged.
    pub(crate) fn charges(&self, order_no: &str) -> Result<u64> {
        let order = self.get(&format!("/orders/{order_no}"))?;
        order.body["charges"].as_u64().context("no charges")
    }

    /// Waits until the order was charged.
    pub(crate) fn wait_for_charge(&self, order_no: &str) -> Result<()> {
        until("a charge", PATIENCE, || {
            let charges = self.charges(order_no)?;
            need(charges > 0, charges)
        })
    }

    /// The record of the order's payment as `/records` shows it.
    pub(crate) fn payment_record(&self, order_no: &str) -> Result<Value> {
        let records = self.get("/records")?.body;
        let key = format!("order:pay::{order_no}");
        let records = records.as_array().context("no list")?;
        let found = records.iter().find(|record| record["key"] == key.as_str());
        found.cloned().context("no record")
    }

    /// Waits until somebody pays or has paid.
    pub(crate) fn wait_for_claim(&self, order_no: &str) -> Result<Value> {
        until("a record", PATIENCE, || self.payment_record(order_no))
    }

    /// Waits until the payment has succeeded.
    pub(crate) fn wait_for_success(&self, order_no: &str) -> Result<Value> {
        until("a success", PATIENCE, || {
            let record = self.payment_record(order_no)?;
            need(record["status"] == "success", &record)?;
            Ok(record)
        })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

fn pay_path(order_no: &str) -> String {
    format!("/orders/{order_no}/pay")
}

fn text(body: &Value, field: &str) -> Result<String> {
    Ok(body[field].as_str().context("no such field")?.to_owned())
}

/// JSON is read; anything else stays text.
fn read(mut response: Response) -> Result<Answer> {
    let is_json = header(&response, "content-type").is_some_and(|media| media.contains("json"));
    let text = response.body_mut().read_to_string()?;
    Ok(Answer {
        status: response.status().as_u16(),
        outcome: header(&response, "idempotency-outcome").unwrap_or_default(),
        retry_after: header(&response, "retry-after").and_then(|seconds| seconds.parse().ok()),
        body: if is_json {
            serde_json::from_str(&text)?
        } else {
            Value::String(text)
        },
    })
}

fn header(response: &Response, name: &str) -> Option<String> {
    let value = response.headers().get(name)?;
    Some(value.to_str().unwrap_or("unreadable").to_owned())
}
