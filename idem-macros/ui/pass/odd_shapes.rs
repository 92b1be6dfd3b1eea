//! Shapes that service code has now and then.
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt::Display;
use std::rc::Rc;

use idem_core::{Error, idempotent};

struct Pair {
    a: u32,
    b: u32,
}

#[idempotent(prefix = "array", key = "{a}:{b}")]
async fn array([a, b]: [u8; 2]) -> Result<u8, Error> {
    Ok(a + b)
}

#[idempotent(prefix = "dereferenced", key = "id")]
async fn dereferenced(&id: &u8) -> Result<u8, Error> {
    Ok(id)
}

#[idempotent(prefix = "at", key = "{pair.a}:{pair.b}")]
async fn bound_by_at(pair @ Pair { .. }: Pair) -> Result<u32, Error> {
    Ok(pair.a + pair.b)
}

#[idempotent(prefix = "by_ref", key = "id")]
async fn bound_by_ref(ref id: String) -> Result<String, Error> {
    Ok(id.clone())
}

#[idempotent(prefix = "raw", key = "r#async")]
async fn raw(r#async: u8) -> Result<u8, Error> {
    Ok(r#async)
}

#[idempotent(prefix = "callback", key = "id", on_duplicate = "reject")]
async fn callback(id: u8, show: impl Fn(&dyn Display) -> String) -> Result<String, Error> {
    Ok(show(&id))
}

#[idempotent(prefix = "elided", key = "text", on_duplicate = "reject")]
async fn elided(text: &str) -> Result<Cow<'_, str>, Error> {
    Ok(Cow::Borrowed(text))
}

#[idempotent(prefix = "higher", key = id)]
async fn higher<'a, F, T>(id: u8, make: F, text: &'a str) -> Result<String, Error>
where
    F: for<'b> FnOnce(&'b str) -> T,
    T: Into<String> + 'a,
{
    let _ = id;
    Ok(make(text).into())
}

#[idempotent(prefix = "cfg", key = "id")]
async fn configured(
    #[cfg(any())] gone: Missing,
    #[cfg(all())] here: u8,
    id: u8,
    #[allow(unused_variables)] idle: u8,
) -> Result<u8, Error> {
    #[cfg(any())]
    drop(gone);
    Ok(id + here)
}

fn pick<A, B>(a: A, _: B) -> A {
    a
}

#[idempotent(prefix = "commas", key = pick::<u8, u8>(a, b), on_error = |_: &Error| idem_core::OnError::Fail)]
async fn commas_inside_options(a: u8, b: u8) -> Result<u8, Error> {
    Ok(a + b)
}

#[idempotent(prefix = "found", key = "{pairs[0].a}:{pairs[1].b}")]
async fn a_field_of_an_element(pairs: Vec<Pair>) -> Result<u32, Error> {
    Ok(pairs[0].a)
}

#[idempotent(prefix = "items", key = "id")]
async fn items_in_the_body(id: u8) -> Result<u8, Error> {
    use std::cmp::max;
    const LEAST: u8 = 3;
    fn twice(id: u8) -> u8 {
        id * 2
    }
    macro_rules! four {
        () => {
            4
        };
    }
    Ok(max(twice(id), LEAST) + four!())
}

#[idempotent(prefix = "empty", key = "id", on_duplicate = "reject")]
async fn only_a_macro(id: u8) -> Result<u8, Error> {
    let _ = id;
    todo!()
}

#[idempotent(prefix = "not_sync", key = "id")]
async fn not_sync(id: u8, cell: Cell<u8>) -> Result<u8, Error> {
    cell.set(id);
    Ok(cell.get())
}

#[idempotent(prefix = "not_send", key = "id")]
async fn not_send(id: u8, shared: Rc<u8>) -> Result<u8, Error> {
    tokio::task::yield_now().await;
    Ok(id + *shared)
}

trait Repository {
    type Id: Clone;
    type Row;

    fn row(id: Self::Id) -> Self::Row;

    #[idempotent(prefix = "repository:load", key = "name", on_duplicate = "reject")]
    async fn load(&mut self, name: &str, id: Self::Id) -> Result<Self::Row, Error>
    where
        Self: Sized,
    {
        let _ = name;
        Ok(Self::row(id))
    }
}

impl Repository for () {
    type Id = u8;
    type Row = u16;

    fn row(id: u8) -> u16 {
        id.into()
    }
}

type Show = Box<dyn Fn(&str) -> String + Send>;

trait Handler<'a> {
    fn handle(&self, text: &'a str) -> &'a str;
}

struct Trim;

impl<'a> Handler<'a> for Trim {
    fn handle(&self, text: &'a str) -> &'a str {
        text.trim()
    }
}

#[idempotent(prefix = "owned", key = "name", detach = true)]
async fn owned_though_it_mentions_references(
    name: &'static str,
    show: fn(&str) -> String,
    boxed: Box<dyn for<'a> Fn(&'a str) -> String + Send>,
    alias: Show,
    handler: impl for<'a> Handler<'a> + Send + 'static,
    other: impl for<'a> PartialEq<&'a str> + Send + 'static,
) -> Result<String, Error> {
    assert!(other == name);
    Ok(show(&boxed(&alias(handler.handle(name)))))
}

#[idempotent(prefix = "static", key = "id", on_duplicate = "reject")]
async fn static_result(id: u8) -> Result<&'static str, Error> {
    let _ = id;
    Ok("static")
}

struct Holder<T>(T);

impl<T: Clone + Display> Holder<T> {
    const SECONDS: std::time::Duration = std::time::Duration::from_secs(60);

    #[idempotent(prefix = "holder", key = self.0.to_string(), expire = Self::SECONDS)]
    async fn show(mut self: Box<Self>, next: T) -> Result<String, Error> {
        self.0 = next;
        Ok(self.0.to_string())
    }

    #[idempotent(prefix = "holder:mut", key = self.0.to_string())]
    async fn change(mut self, next: T) -> Result<String, Error> {
        self.0 = next;
        Ok(self.0.to_string())
    }
}

async fn outer_with_inner_function() -> Result<u8, Error> {
    #[idempotent(prefix = "nested:item", key = "id")]
    async fn inner(id: u8) -> Result<u8, Error> {
        #[idempotent(prefix = "nested:deeper", key = "id")]
        async fn deeper(id: u8) -> Result<u8, Error> {
            Ok(id)
        }
        deeper(id).await
    }
    inner(9).await
}

fn send<F: Future + Send>(future: F) -> F {
    future
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    idem_core::Idempotency::memory().install().unwrap();
    assert_eq!(array([1, 2]).await.unwrap(), 3);
    assert_eq!(dereferenced(&1).await.unwrap(), 1);
    assert_eq!(bound_by_at(Pair { a: 1, b: 2 }).await.unwrap(), 3);
    assert_eq!(bound_by_ref("a".into()).await.unwrap(), "a");
    assert_eq!(raw(1).await.unwrap(), 1);
    assert_eq!(callback(1, |id| id.to_string()).await.unwrap(), "1");
    assert_eq!(elided("a").await.unwrap(), "a");
    assert_eq!(higher(1, |text: &str| text.to_owned(), "a").await.unwrap(), "a");
    assert_eq!(configured(1, 2, 3).await.unwrap(), 3);
    assert_eq!(commas_inside_options(1, 2).await.unwrap(), 3);
    let pairs = vec![Pair { a: 1, b: 2 }, Pair { a: 3, b: 4 }];
    assert_eq!(a_field_of_an_element(pairs).await.unwrap(), 1);
    assert_eq!(items_in_the_body(5).await.unwrap(), 14);
    let _ = only_a_macro;
    assert_eq!(send(not_sync(1, Cell::new(0))).await.unwrap(), 1);
    assert_eq!(not_send(1, Rc::new(1)).await.unwrap(), 2);
    assert_eq!(().load("a", 1).await.unwrap(), 1);
    assert_eq!(Box::new(Holder(1)).show(2).await.unwrap(), "2");
    assert_eq!(Holder(1).change(2).await.unwrap(), "2");
    let owned = owned_though_it_mentions_references(
        "a",
        str::to_owned,
        Box::new(str::to_owned),
        Box::new(str::to_owned),
        Trim,
        String::from("a"),
    );
    assert_eq!(owned.await.unwrap(), "a");
    assert_eq!(static_result(1).await.unwrap(), "static");
    assert_eq!(outer_with_inner_function().await.unwrap(), 9);
}
