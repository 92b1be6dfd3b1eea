//! What the attribute adds to a function's future, whatever its arguments weigh.

use std::time::Duration;

use idem_core::{Error, Idempotency, idempotent};

const ARGUMENT: usize = 16 * 1024;
const ALLOWED: usize = 1024;

struct Request {
    id: u32,
    payload: [u8; ARGUMENT],
}

fn request() -> Request {
    Request {
        id: 1,
        payload: [7; ARGUMENT],
    }
}

async fn plain(request: Request) -> Result<u32, Error> {
    tokio::time::sleep(Duration::ZERO).await;
    Ok(u32::from(request.payload[0]) + request.id)
}

#[idempotent(prefix = "size", key = "request.id")]
async fn guarded(request: Request) -> Result<u32, Error> {
    tokio::time::sleep(Duration::ZERO).await;
    Ok(u32::from(request.payload[0]) + request.id)
}

#[expect(clippy::unused_async, reason = "compared with its guarded twin")]
async fn plain_without_await(request: Request) -> Result<u32, Error> {
    Ok(u32::from(request.payload[0]) + request.id)
}

#[idempotent(prefix = "size:quick", key = "request.id")]
async fn guarded_without_await(request: Request) -> Result<u32, Error> {
    Ok(u32::from(request.payload[0]) + request.id)
}

// M13
#[test]
fn a_future_that_keeps_its_arguments_grows_by_less_than_a_kibibyte() {
    let plain = size_of_val(&plain(request()));
    let guarded = size_of_val(&guarded(request()));
    assert!(guarded < plain + ALLOWED, "{plain} became {guarded}");
}

// Arguments wait for the admission, so a body that never waited holds them across an await now,
// which costs what it costs any async fn: a second copy.
#[test]
fn a_future_that_never_waited_grows_by_one_copy_and_less_than_a_kibibyte() {
    let plain = size_of_val(&plain_without_await(request()));
    let guarded = size_of_val(&guarded_without_await(request()));
    assert!(
        guarded < plain + ARGUMENT + ALLOWED,
        "{plain} became {guarded}"
    );
}

// M13
#[test]
fn a_big_argument_fits_a_small_stack() {
    Idempotency::memory().install().unwrap();
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(guarded(request())).unwrap()
    };
    let thread = std::thread::Builder::new()
        .stack_size(512 * 1024)
        .spawn(run)
        .unwrap();
    assert_eq!(thread.join().unwrap(), 8);
}
