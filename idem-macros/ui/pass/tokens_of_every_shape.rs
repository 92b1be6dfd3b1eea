use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use idem_core::{AsToken, Error, Idempotency, KeyPart, Token, Tokens, idempotent};

#[derive(Clone)]
struct User {
    tenant: u32,
    id: u64,
}

struct Form<T> {
    token: T,
    amount: u32,
}

#[idempotent(prefix = "token:newtype", token = "form.token", subject = "user.id")]
async fn newtype(user: &User, form: Form<Token>) -> Result<u32, Error> {
    Ok(form.amount)
}

#[idempotent(prefix = "token:string", token = form.token, subject = user.id)]
async fn string(user: &User, form: Form<String>) -> Result<u32, Error> {
    Ok(form.amount)
}

#[idempotent(prefix = "token:text", token = token, subject = (user.tenant, user.id))]
async fn text(user: &User, token: &str) -> Result<usize, Error> {
    Ok(token.len())
}

#[idempotent(prefix = "token:option", token = "form.token", subject = "user?.id")]
async fn option(user: Option<User>, form: Form<Option<Token>>) -> Result<u32, Error> {
    Ok(form.amount)
}

#[idempotent(prefix = "token:opened", token = "form.token?", subject = user.id)]
async fn opened(user: User, form: Form<Option<String>>) -> Result<u32, Error> {
    Ok(form.amount)
}

#[idempotent(prefix = "token:try", token = form.token.as_ref()?, subject = user.id)]
async fn tried(user: User, form: Form<Option<Arc<str>>>) -> Result<u32, Error> {
    Ok(form.amount)
}

#[idempotent(
    prefix = "token:generic",
    token = "form.token",
    subject = subject,
    fingerprint = "form.amount",
    in_progress = "wait",
    forget = true,
    checkpoint = true,
    detach = true,
)]
async fn generic<T, S>(subject: S, form: Form<T>) -> Result<u32, Error>
where
    T: AsToken + Send + 'static,
    S: KeyPart + Send + 'static,
{
    Ok(form.amount)
}

#[async_trait]
trait Submits {
    async fn submit(&self, token: Token) -> Result<u64, Error>;
}

#[async_trait]
impl Submits for User {
    #[idempotent(prefix = "token:method", token = "token", subject = "self.id")]
    async fn submit(&self, token: Token) -> Result<u64, Error> {
        Ok(self.id)
    }
}

const TTL: Duration = Duration::from_secs(60);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let idem = Idempotency::memory();
    idem.install()?;
    let user = User { tenant: 1, id: 7 };
    let issue = async |prefix: &str| idem.tokens(prefix).issue(user.id, TTL).await;
    fn form<T>(token: T) -> Form<T> {
        Form { token, amount: 5 }
    }

    newtype(&user, form(issue("token:newtype").await?)).await?;
    string(&user, form(issue("token:string").await?.to_string())).await?;
    let tokens: Tokens = idem.tokens("token:text");
    let token = tokens.issue((user.tenant, user.id), TTL).await?;
    text(&user, token.as_str()).await?;
    option(Some(user.clone()), form(Some(issue("token:option").await?))).await?;
    let token = issue("token:opened").await?.to_string();
    opened(user.clone(), form(Some(token))).await?;
    let token = issue("token:try").await?.as_str().into();
    tried(user.clone(), form(Some(token))).await?;
    generic(user.id, form(issue("token:generic").await?)).await?;
    user.submit(issue("token:method").await?).await?;

    for refused in [
        option(Some(user.clone()), form(None)).await,
        opened(user.clone(), form(None)).await,
        tried(user.clone(), form(None)).await,
        generic("nobody", form(issue("token:generic").await?)).await,
    ] {
        assert!(matches!(refused, Err(Error::TokenRejected { .. })));
    }
    let nobody = option(None, form(Some(issue("token:option").await?))).await;
    assert!(matches!(nobody, Err(Error::MissingKey { part }) if part == "user?.id"));
    Ok(())
}
