//! What the attribute costs in size.

use std::sync::LazyLock;

use idem_core::{Error, Idempotency, idempotent};

/// Named, so that no scope is around the futures that are measured.
static ENGINE: LazyLock<Idempotency> = LazyLock::new(Idempotency::memory);

struct Large {
    order_no: u32,
    payload: [u8; 16 * 1024],
}

impl Large {
    fn new(order_no: u32) -> Self {
        Self {
            order_no,
            payload: [1; 16 * 1024],
        }
    }
}

async fn plain(large: Large) -> Result<u32, Error> {
    tokio::task::yield_now().await;
    Ok(large.payload.iter().map(|byte| u32::from(*byte)).sum())
}

#[idempotent(prefix = "large", key = "large.order_no", engine = *ENGINE)]
async fn guarded(large: Large) -> Result<u32, Error> {
    tokio::task::yield_now().await;
    Ok(large.payload.iter().map(|byte| u32::from(*byte)).sum())
}

#[idempotent(prefix = "large:detached", key = "large.order_no", engine = *ENGINE, detach = true)]
async fn detached(large: Large) -> Result<u32, Error> {
    tokio::task::yield_now().await;
    Ok(large.payload.iter().map(|byte| u32::from(*byte)).sum())
}

// M13
#[test]
fn a_guarded_future_is_less_than_a_kibibyte_larger_than_the_plain_one() {
    let plain = size_of_val(&plain(Large::new(1)));
    for guarded in [
        size_of_val(&guarded(Large::new(1))),
        size_of_val(&detached(Large::new(1))),
    ] {
        assert!(guarded < plain + 1024, "plain {plain}, guarded {guarded}");
    }
}

// M13
#[test]
fn large_arguments_run_on_a_small_stack() {
    let on_a_small_stack = std::thread::Builder::new()
        .stack_size(512 * 1024)
        .spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap();
            for _ in 0..2 {
                let sum = runtime.block_on(guarded(Large::new(1)));
                assert_eq!(sum.unwrap(), 16 * 1024);
                let sum = runtime.block_on(detached(Large::new(1)));
                assert_eq!(sum.unwrap(), 16 * 1024);
            }
        });
    on_a_small_stack.unwrap().join().unwrap();
}
