//! The engine's private twin of [`Store`]: the same verbs behind one pointer.

use std::future::Future;
use std::pin::Pin;

use super::{Answered, Finding, Page, Scan, Store, StoreKey, Watch};
use crate::error::StoreError;
use crate::record::{
    Claim, ClaimReply, Forget, Issue, IssueReply, OperatorReply, Refuse, RefuseReply, Renew,
    RenewReply, Resolve, Settle, SettleReply, Slot, StoreTime,
};

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

macro_rules! erase {
    ($($verb:ident($($arg:ident: $kind:ty),*) -> $output:ty;)*) => {
        #[allow(clippy::elidable_lifetime_names, reason = "verbs with an argument need the name")]
        pub(crate) trait ErasedStore: Send + Sync + 'static {
            $(fn $verb<'a>(&'a self, $($arg: &'a $kind),*) -> Boxed<'a, $output>;)*
        }

        #[allow(clippy::elidable_lifetime_names, reason = "verbs with an argument need the name")]
        impl<S: Store> ErasedStore for S {
            $(fn $verb<'a>(&'a self, $($arg: &'a $kind),*) -> Boxed<'a, $output> {
                Box::pin(Store::$verb(self, $($arg),*))
            })*
        }
    };
}

erase! {
    claim(key: StoreKey, op: Claim) -> Answered<ClaimReply>;
    renew(key: StoreKey, op: Renew) -> Answered<RenewReply>;
    settle(key: StoreKey, op: Settle) -> Answered<SettleReply>;
    issue(key: StoreKey, op: Issue) -> Answered<IssueReply>;
    refuse(key: StoreKey, op: Refuse) -> Answered<RefuseReply>;
    forget(key: StoreKey, op: Forget) -> Answered<OperatorReply>;
    resolve(key: StoreKey, op: Resolve) -> Answered<OperatorReply>;
    peek(key: StoreKey) -> Answered<Slot>;
    scan(scan: Scan) -> Answered<Page>;
    now() -> Result<StoreTime, StoreError>;
    renew_all(batch: [(StoreKey, Renew)]) -> Vec<Answered<RenewReply>>;
    watch(key: StoreKey) -> Result<Watch, StoreError>;
    check() -> Result<Vec<Finding>, StoreError>;
}
