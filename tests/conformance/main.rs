//! The same laws and the same random histories on every store, one module a store.

mod broken;
mod memory;
