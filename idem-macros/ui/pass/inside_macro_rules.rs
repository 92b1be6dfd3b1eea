use idem_core::{Error, idempotent};

macro_rules! service {
    ($name:ident, $prefix:literal, $arg:ident) => {
        #[idempotent(prefix = $prefix, key = "id", expire = 60)]
        async fn $name($arg: u32, id: u32) -> Result<u32, Error> {
            Ok(id + $arg)
        }
    };
}

macro_rules! service_of {
    ($name:ident, $key:expr, $arg:ident) => {
        #[idempotent(prefix = "of", key = $key)]
        async fn $name($arg: u32) -> Result<u32, Error> {
            Ok($arg)
        }
    };
}

service!(first, "first", x);
service_of!(second, order, order);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    idem_core::Idempotency::memory().install().unwrap();
    assert_eq!(first(1, 2).await.unwrap(), 3);
    assert_eq!(second(1).await.unwrap(), 1);
}
