//! The macros, with their documentation: it lives here so that its examples are tests.

/// Runs an `async fn` once for each key: duplicates get the first run's result, or a clear refusal.
///
/// # Examples
/// ```
/// use idem_core::{Error, Idempotency, OnError, Recovered, idempotent};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone)]
/// struct PayRequest { order_no: String, amount: u64 }
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// struct Receipt { charge: String }
///
/// #[derive(Debug, thiserror::Error)]
/// enum PayError {
///     #[error("the card was declined")]
///     Declined,
///     #[error("the bank did not answer")]
///     TimedOut,
///     #[error(transparent)]
///     Idem(#[from] Error),
/// }
///
/// // Declined: nothing happened, a retry may run. Anything else: nobody knows.
/// fn classify(error: &PayError) -> OnError {
///     match error {
///         PayError::Declined => OnError::Fail,
///         _ => OnError::Abandon,
///     }
/// }
///
/// // Asked after an attempt that died in the middle: looks `request` up at the bank. `Done` with the
/// // receipt if it was charged, `NotDone` only if it was not and can not be any more.
/// async fn lookup(request: &PayRequest) -> Result<Recovered<Receipt>, PayError> {
///     # let _ = request;
///     Ok(Recovered::Unknown)
/// }
///
/// #[idempotent(
///     prefix = "order:pay",
///     key = "request.order_no",
///     fingerprint = "request.amount",
///     expire = "7d",
///     on_error = classify,
///     recover = lookup,
/// )]
/// async fn pay(request: PayRequest) -> Result<Receipt, PayError> {
///     Ok(Receipt { charge: format!("charge of {}", request.amount) })
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), PayError> {
/// # Idempotency::memory().scope(async {
/// let request = PayRequest { order_no: "A-1".into(), amount: 500 };
/// let first = pay(request.clone()).await?;
/// assert_eq!(pay(request.clone()).await?, first); // not run again
///
/// let other = pay(PayRequest { amount: 700, ..request }).await;
/// assert!(matches!(other, Err(PayError::Idem(Error::Mismatch { .. }))));
/// # Ok(()) }).await
/// # }
/// ```
///
/// # The key
/// In quotes it is a path, `"request.order_no"`, or a template of paths,
/// `"{request.user_id}:{request.order_no}"`. A path starts at an argument, as bound by any pattern
/// (`Json(request): Json<PayRequest>`), or at `self`, and goes on by `.field`, `.0`, `[0]`,
/// `["name"]`, `.getter()`, and `?` for an option: `"request.coupon?.code"`. Between two
/// placeholders of a template stands some punctuation; literal braces are `{{` and `}}`. Programs
/// can name the key by [`Key::new`](crate::Key::new) only where that punctuation is one `:`.
///
/// Without quotes it is any expression: `key = request.order_no`, or a tuple of them,
/// `key = (request.user_id, request.order_no)`. It, and each element of the tuple, is borrowed.
///
/// Each value is a [`KeyPart`](trait@crate::KeyPart). A part that is `None`, blank, or not there
/// is missing: [`Error::MissingKey`](crate::Error::MissingKey) names it and the body does not run.
/// The key is computed once, before the arguments move into the body.
///
/// A duplicate is answered **without the body**: check before the call who may ask. An id that a
/// client makes up is that client's alone: put the signed-in caller into the key,
/// `key = (user.id, request.request_id)`.
///
/// Never change a `prefix` or a `key` while retries of old requests can come: each of them would be a
/// new request, and run.
///
/// # One-time tokens
/// A form has no number of its own. `token` takes the place of `key`: a path or an expression that
/// gives a [`Token`](crate::Token), a string, or an option of one, issued beforehand by
/// [`Tokens`](crate::Tokens) with the same prefix. `subject` is who presents it: a path, an
/// expression or a tuple of them, and always **the authenticated caller, never a field of the
/// request body**, which anyone can write.
/// ```
/// # use std::time::Duration;
/// use idem_core::{Error, Idempotency, Token, idempotent};
///
/// struct User { id: u64 } // from the session
/// struct Form { token: Token, amount: u32 } // from the body
///
/// #[idempotent(prefix = "order:submit", token = "form.token", subject = "user.id")]
/// async fn submit(user: &User, form: Form) -> Result<String, Error> {
///     Ok(format!("{} for {}", form.amount, user.id))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let idem = Idempotency::memory();
/// let (alice, mallory) = (User { id: 1 }, User { id: 2 });
/// let token = idem.tokens("order:submit").issue(alice.id, Duration::from_mins(30)).await?;
/// let form = |amount| Form { token: token.clone(), amount };
/// # idem.scope(async {
///
/// let first = submit(&alice, form(5)).await?;
/// assert_eq!(submit(&alice, form(5)).await?, first); // not run again
/// let stolen = submit(&mallory, form(5)).await;
/// assert!(matches!(stolen, Err(Error::TokenRejected { .. })));
/// # Ok(()) }).await
/// # }
/// ```
/// A body that failed hands its token back, for the time that it has left and for a corrected form.
/// With `forget = true` a used token is rejected like any wrong one. Without a `fingerprint` a second
/// submission with other content is given the result of the first. The body never runs without a
/// guard: a token that nobody has checked lets nobody in.
///
/// # In a transaction
/// With `tx` the record is written by the transaction that an argument is: effects and record
/// commit together, or not at all. The body has the argument as it had it before, within a
/// savepoint. `detach` does not go with it: run all from `begin()` to the commit in a task of its
/// own, where a client that hangs up would drop it. See the module `transaction`, with the feature of
/// a database. Without `tx` the body commits before it returns: what its caller rolls back after
/// that is replayed as done.
/// ```
/// # type Failure = Box<dyn std::error::Error + Send + Sync>;
/// # #[cfg(feature = "sqlite")] mod sqlite {
/// # use super::Failure;
/// use idem_core::{Idempotency, idempotent, store::SqliteStore};
/// use sqlx::{Sqlite, Transaction, sqlite::SqlitePoolOptions};
///
/// #[idempotent(prefix = "order:pay", key = order_no, tx = tx)]
/// async fn pay(tx: &mut Transaction<'_, Sqlite>, order_no: &str) -> Result<String, Failure> {
///     sqlx::query("INSERT INTO payment VALUES (?)").bind(order_no).execute(&mut **tx).await?;
///     Ok(format!("paid {order_no}"))
/// }
///
/// # pub async fn main() -> Result<(), Failure> {
/// # let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
/// # let store = SqliteStore::new(pool.clone());
/// # store.migrate().await?;
/// # sqlx::raw_sql("CREATE TABLE payment (order_no TEXT)").execute(&pool).await?;
/// # Idempotency::builder(store).build()?.scope(async {
/// for _ in 0..2 {
///     let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
///     assert_eq!(pay(&mut tx, "A-1").await?, "paid A-1"); // the second time from the record
///     tx.commit().await?;
/// }
/// let payments: i64 = sqlx::query_scalar("SELECT count(*) FROM payment").fetch_one(&pool).await?;
/// assert_eq!(payments, 1);
/// # Ok(()) }).await
/// # }
/// # }
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Failure> { sqlite::main().await }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
///
/// # Options
/// An option that is not written takes the engine's value, then the one of this table. Times are
/// whole seconds (`600`), a number with a unit (`"500ms"`, `"30s"`, `"10m"`, `"24h"`, `"7d"`), or a
/// constant of type `Duration`.
///
/// | option | default | meaning |
/// |---|---|---|
/// | `prefix = "order:pay"` | required | the business type; one function each, and always the same |
/// | `key = …` | required unless `token` | see above |
/// | `token = …`, `subject = …` | none | a one-time token in place of the key, and whose it is; see above |
/// | `expire` | 24 h | how long a finished record is kept; a round trip to the store has to fit well into half of it, the longest lease that is not said |
/// | `lease` | 30 s, or `expire / 2` if less | how long a silent attempt keeps its record; at least 1 s |
/// | `on_duplicate = "replay"`, `"reject"` | replay | give the stored result, or `Error::Duplicate` |
/// | `in_progress = "reject"`, `"wait"` | reject | `Error::InProgress`, or wait for the running attempt |
/// | `wait` | 5 s | how long to wait; given alone it asks for waiting |
/// | `on_error = "fail"`, `"release"`, `"abandon"`, `"replay"`, or a `fn(&E) -> OnError` | fail | what an `Err` of the body means; see [`OnError`](crate::OnError) |
/// | `replay_errors = true` | false | the function of `on_error` may answer `Replay` |
/// | `on_abandoned = "hold"`, `"rerun"` | hold | an attempt that died in the middle: `Error::OutcomeUnknown`, or run again |
/// | `checkpoint = true` | false | the body calls [`Attempt::checkpoint`](crate::Attempt::checkpoint) before its first effect; one that forgets it is [run again](crate::Policy::own_checkpoint) after a crash, whatever it has done. Without this option the claim is the checkpoint |
/// | `recover = path`, or a call | none | finds out what an attempt that died has done, or logs why it can not tell; a path gets the receiver and each argument by reference |
/// | `fingerprint = "request"`, a list `"a, b"`, or an expression | none | what must be equal for one key; `Serialize`. A version that hashes something else refuses the retries of what ran before: name single fields, such as stay |
/// | `forget = true` | false | success leaves nothing behind: only calls that overlap are kept apart, and the next one runs again. (A used token stays used.) |
/// | `message = "…"` | none | [`Error::message`](crate::Error::message): what a refused user sees |
/// | `engine = expression` | the installed one | `AsRef<Idempotency>` |
/// | `on_store_error = "error"`, `"run"` | error | the store gives no answer: refuse, or run unguarded, and so without [`derive_key`](crate::Attempt::derive_key); one that refuses (full, loading, read-only, no rights) has answered |
/// | `on_missing_key = "error"`, `"run"` | error | a part of the key is missing: refuse, or run unguarded |
/// | `detach = true` | false | run the body in a task of its own; arguments are owned and `Send` |
/// | `tx = argument` | none | keep the record in the transaction that this argument is, so that effects and record commit together: see the module `transaction`. A function with an argument `&mut Transaction` (`PgTransaction`, `MySqlTransaction`, `SqliteTransaction`) that keeps its record apart says `tx = none`; behind an alias, as a connection, as an executor or by value a transaction is not noticed |
/// | `crate = path` | `::idem_core` | where the runtime is, for re-exports |
///
/// # The function
/// An `async fn`, free or a method with any receiver, also inside `#[async_trait]` (write this
/// attribute on the method), with generics, lifetimes and patterns. Type arguments, of the function
/// and of its `impl`, are no part of the key, nor is the type for which a `macro_rules!` writes a
/// method once more: such functions share their records.
///
/// It returns a `Result<T, E>`, also behind an alias, with `E: From<idem_core::Error>`. An `Ok` is
/// final, whatever it says. `T` is `Serialize` and `DeserializeOwned`, unless
/// `on_duplicate = "reject"` or `forget = true`; a duplicate gets what serde makes of it, without a
/// field that is skipped or masked.
///
/// # Errors
/// The function's own, and each [`Error`](crate::Error), converted by `From`.
///
/// # Cancel safety
/// Dropped before the body began, nothing happened, and the key is given up. Dropped in the body,
/// the record is abandoned: see `on_abandoned` and `recover`; `detach = true` keeps the body going.
/// Dropped while the record is settled, that goes on in the background.
///
/// # Concurrent calls on the same key
/// One runs its body. The others get `Error::InProgress`, or wait for it (`in_progress = "wait"`).
pub use idem_macros::idempotent;

/// Runs an `async fn` under a [lock](crate::lock): one call at a time for each key, among all
/// processes on one store.
///
/// Each call runs its body, one after the other; where a request should run once, use
/// [`idempotent`](macro@crate::idempotent). The two stack, and their records do not meet, also with
/// one prefix and key. The attribute nearer to the `fn` is asked first; usually that is
/// `idempotent`, so that a replay needs no lock:
///
/// ```text
/// #[locked(prefix = "stock", key = request.item, wait = "5s")]
/// #[idempotent(prefix = "order:create", key = request.order_no)]
/// async fn create(request: CreateOrder) -> Result<Order, OrderError> { … }
/// ```
///
/// A lock that is not got is an error of the body then, which has not begun: with
/// `on_error = "fail"` or `"release"` the request may come again. A function for `on_error` has to say
/// so itself, by [`OnError::Release`](crate::OnError::Release) for
/// [`Error::InProgress`](crate::Error::InProgress) where the body makes no guarded calls of its own:
/// `Abandon` would leave the outcome of a request unknown that did nothing but wait.
///
/// # Examples
/// ```
/// use idem_core::{Error, Idempotency, Lock, locked};
///
/// #[locked(prefix = "stock", key = "item", lease = 10, wait = "5s")]
/// async fn take(item: u32, left: &mut u32) -> Result<i64, Error> {
///     *left -= 1;
///     // For what the body writes to, before it reads there: see the module `lock`.
///     Ok(Lock::current().expect("this body is locked").fence().as_i64())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// # Idempotency::memory().scope(async {
/// let mut left = 10;
/// let first = take(7, &mut left).await?;
/// assert!(take(7, &mut left).await? > first);
/// assert_eq!(left, 8);
/// # Ok(()) }).await
/// # }
/// ```
///
/// # Options
/// Keys and times are written as for [`idempotent`](macro@crate::idempotent).
///
/// | option | default | meaning |
/// |---|---|---|
/// | `prefix = "stock"` | required | what is locked; any number of functions may share it |
/// | `key = …` | required | which one |
/// | `lease` | the engine's, 30 s | how long a silent holder keeps the lock; 1 s to 24 h; renewed while the body runs |
/// | `wait` | not at all | how long to wait for the holder before |
/// | `message = "…"` | none | [`Error::message`](crate::Error::message): what a refused user sees |
/// | `engine = expression` | the installed one | `AsRef<Idempotency>` |
/// | `crate = path` | `::idem_core` | where the runtime is, for re-exports |
///
/// # The function
/// As for [`idempotent`](macro@crate::idempotent), but nothing of its result is stored, so that it
/// may be any type, also one that borrows. [`Lock::current`](crate::Lock::current) gives the body
/// its fence, and says whether the lock was lost: the body goes on then, since only it knows where
/// it can stop, and its result reaches the caller.
///
/// A transaction that the caller commits is committed after the release; commit in the body, or
/// lock around both. A body that runs on in a task of its own (`detach = true` of an `idempotent`
/// inside) outlives the lock when its caller goes away, and has no `Lock::current`; write `#[locked]`
/// above it, and the lock is in that task.
///
/// # Errors
/// The function's own, and [`Error`](crate::Error) as of
/// [`acquire`](crate::lock::LockRequest::acquire), converted by `From`. What the body returned
/// reaches the caller also when its lock was lost or the release was not answered; both are said
/// as error events.
///
/// # Panics
/// If the body does; the lock is released before.
///
/// # Cancel safety
/// Dropped, the lock is released in the background.
///
/// # Concurrent calls on the same key
/// One runs its body at a time. The others get `Error::InProgress`, or wait.
pub use idem_macros::locked;

/// Lets a newtype, or an enum without data, be a part of a key.
///
/// A struct with one field is written as that field; a variant as its name. A renamed variant is
/// another key: records of the old name are not found any more. `#[key_part(crate = path)]` says
/// where the runtime is, for re-exports.
///
/// # Examples
/// ```
/// use idem_core::{Key, KeyPart};
///
/// #[derive(KeyPart)]
/// struct OrderNo(u64);
///
/// #[derive(KeyPart)]
/// enum Channel { Web, Shop }
///
/// let key = Key::new("order:pay", (Channel::Web, OrderNo(17)))?;
/// assert_eq!(key.as_str(), "order:pay::Web:17");
/// # let _ = Channel::Shop;
/// # Ok::<(), idem_core::Error>(())
/// ```
pub use idem_macros::KeyPart;

/// Makes an enum without data the states of a business object: see
/// [`States`](trait@crate::States).
///
/// Each variant says `#[state(code = 1, name = "to be paid", to(Paid, Cancelled))]`:
///
/// | option | default | meaning |
/// |---|---|---|
/// | `code = 1` | required | the number that a database keeps, an `i16`; never give it to another state |
/// | `name = "…"` | the variant's | what people read |
/// | `to(A, B)` | nothing: the end | the states that may come next; itself only if it is named |
///
/// On the enum, `#[state(crate = path)]` says where the runtime is, for re-exports. A state that is
/// not there, a code that two states share, a target named twice and a variant with data are
/// errors of the compiler.
///
/// # Examples
/// ```
/// use idem_core::States;
///
/// #[derive(Debug, Clone, Copy, PartialEq, Eq, States)]
/// enum OrderStatus {
///     #[state(code = 1, name = "to be paid", to(Paid, Cancelled))]
///     Created,
///     #[state(code = 2, to(Shipped))]
///     Paid,
///     #[state(code = 3)]
///     Shipped,
///     #[state(code = 9)]
///     Cancelled,
/// }
///
/// assert!(OrderStatus::Created.can_become(OrderStatus::Paid));
/// assert!(!OrderStatus::Cancelled.can_become(OrderStatus::Paid));
/// assert_eq!(OrderStatus::from_code(3), Some(OrderStatus::Shipped));
/// assert_eq!(OrderStatus::Created.name(), "to be paid");
/// ```
pub use idem_macros::States;
