//! A store that is also used by somebody else.

use std::sync::Arc;

use super::{Answered, Finding, Page, Scan, Store, StoreKey, Watch};
use crate::error::StoreError;
use crate::record::{
    Claim, ClaimReply, Forget, Issue, IssueReply, OperatorReply, Refuse, RefuseReply, Renew,
    RenewReply, Resolve, Settle, SettleReply, Slot, StoreTime,
};

/// Keep a handle on a store that you give to an engine.
impl<S: Store> Store for Arc<S> {
    async fn claim(&self, key: &StoreKey, op: &Claim) -> Answered<ClaimReply> {
        S::claim(self, key, op).await
    }

    async fn renew(&self, key: &StoreKey, op: &Renew) -> Answered<RenewReply> {
        S::renew(self, key, op).await
    }

    async fn settle(&self, key: &StoreKey, op: &Settle) -> Answered<SettleReply> {
        S::settle(self, key, op).await
    }

    async fn issue(&self, key: &StoreKey, op: &Issue) -> Answered<IssueReply> {
        S::issue(self, key, op).await
    }

    async fn refuse(&self, key: &StoreKey, op: &Refuse) -> Answered<RefuseReply> {
        S::refuse(self, key, op).await
    }

    async fn forget(&self, key: &StoreKey, op: &Forget) -> Answered<OperatorReply> {
        S::forget(self, key, op).await
    }

    async fn resolve(&self, key: &StoreKey, op: &Resolve) -> Answered<OperatorReply> {
        S::resolve(self, key, op).await
    }

    async fn peek(&self, key: &StoreKey) -> Answered<Slot> {
        S::peek(self, key).await
    }

    async fn scan(&self, scan: &Scan) -> Answered<Page> {
        S::scan(self, scan).await
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        S::now(self).await
    }

    async fn renew_all(&self, batch: &[(StoreKey, Renew)]) -> Vec<Answered<RenewReply>> {
        S::renew_all(self, batch).await
    }

    async fn watch(&self, key: &StoreKey) -> Result<Watch, StoreError> {
        S::watch(self, key).await
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        S::check(self).await
    }
}
