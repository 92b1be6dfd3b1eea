//! Run a service function once.
