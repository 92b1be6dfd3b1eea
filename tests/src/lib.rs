//! What the suites share.
